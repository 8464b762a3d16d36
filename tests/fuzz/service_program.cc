#include "tests/fuzz/service_program.h"

#include "server/program_registry.h"
#include "tests/codec/wire_values.h"
#include "tests/programs/temporary_directory.h"
#include "tests/server/service_fixture.h"

namespace cipherd::fuzz {

programs::ProgramSpec ServiceProgram() {
  using programs::OperationKind;
  const programs::SlotLayout layout = {.element_count = 8};
  programs::ProgramSpec spec;
  spec.name = "p";
  spec.context = testing::SmallContext()->parameters();
  spec.inputs = {{.name = "x", .layout = layout}};
  spec.operations = {{.name = "x2", .kind = OperationKind::kSquare, .a = "x"},
                     {.name = "linear", .kind = OperationKind::kRelinearize, .a = "x2"},
                     {.name = "square", .kind = OperationKind::kRescale, .a = "linear"},
                     {.name = "next", .kind = OperationKind::kRotate, .a = "square", .step = 1},
                     {.name = "sum", .kind = OperationKind::kAdd, .a = "square", .b = "next"}};
  spec.outputs = {{.name = "y", .edge = "sum", .layout = layout}};
  return spec;
}

v1::GetProgramResponse ServiceProgramDescription() {
  const programs::TemporaryDirectory directory;
  server::testing::AddProgram(directory.path(), ServiceProgram());
  const auto registry = server::ProgramRegistry::Load(
      directory.path(), ckks::SecurityPolicy::kAllowInsecure, engine::ServingSettings());
  return registry.value()->programs().front()->description;
}

}  // namespace cipherd::fuzz
