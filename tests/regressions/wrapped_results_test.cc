// A result that outgrew the modulus came back reduced by it, as any number of the usual size, and
// was taken for right.
#include <cmath>
#include <memory>

#include "client/planned_range.h"
#include "client/planning/local_program.h"
#include "client/planning/model_planner.h"
#include "gtest/gtest.h"
#include "proto/codec/model_codec.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

TEST(WrappedResultsTest, EveryResultIsRightOrRefused) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<runtime::Device> device,
                       testing::OpenTestDevice("cpu"));
  ASSERT_OK_AND_ASSIGN(const planning::Model model, codec::ParseModelText(R"(
    name: "sum"
    inputs { name: "x" shape: [2] }
    operations { name: "y" linear { a: "x" weight: "w" } }
    outputs { name: "y" edge: "y" }
    constants { name: "w" shape: [1, 2] values: [2, 3] }
  )",
                                                                          "sum"));
  ASSERT_OK_AND_ASSIGN(const PlannedModel planned, PlanModel(model, {}, *device, {}));
  // As a program that says nothing of its inputs.
  auto silent = std::make_shared<programs::CheckedProgram>(*planned.program);
  silent->spec.inputs[0].lower = silent->spec.inputs[0].upper = 0;
  ASSERT_OK_AND_ASSIGN(const auto local, LocalProgram::Make(silent, *device));
  int refused_count = 0;
  for (double size = 1; size < 0x1p28; size *= 1.75) {
    const absl::StatusOr<NamedVectors> outputs = local->Evaluate({{"x", {{size, 0.5 * size}}}});
    if (!outputs.ok()) {
      EXPECT_EQ(outputs.status().code(), absl::StatusCode::kOutOfRange) << outputs.status();
      ++refused_count;
      continue;
    }
    EXPECT_NEAR(outputs->at("y")[0][0], 3.5 * size, 1e-3) << size;
  }
  // Those beyond four times the bound are most.
  EXPECT_GT(refused_count, 20);
}

}  // namespace
}  // namespace cipherd::client
