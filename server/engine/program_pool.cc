#include "server/engine/program_pool.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::engine {

absl::StatusOr<std::unique_ptr<ProgramPool>> ProgramPool::Create(
    const Program& program, const ProgramBinding& binding, int instances, int warmup,
    runtime::Device& device, runtime::Stream& stream, std::function<void()> on_return) {
  std::vector<std::unique_ptr<ProgramInstance>> built;
  built.reserve(instances);
  for (int i = 0; i < instances; ++i) {
    CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<ProgramInstance> instance,
                             ProgramInstance::Build(program, binding, device, stream, warmup));
    built.push_back(std::move(instance));
  }
  return std::unique_ptr<ProgramPool>(
      new ProgramPool(absl::StrCat("instances of program '", program.info().name, "'"),
                      std::move(built), std::move(on_return)));
}

}  // namespace cipherd::engine
