#include "server/program_version.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "server/engine/failure_reason.h"

namespace cipherd::server {

absl::StatusOr<RegisteredProgramPtr> FindProgramVersion(const ProgramRegistry& programs,
                                                        const engine::Engine& engine,
                                                        std::string_view name, uint32_t version) {
  const std::vector<RegisteredProgramPtr> versions = programs.Versions(name);
  const auto fits = [&](const RegisteredProgramPtr& program) {
    return version == 0 ? engine.IsReady(*program->program) : program->info().version == version;
  };
  const auto found = std::find_if(versions.begin(), versions.end(), fits);
  if (found != versions.end()) return *found;
  if (version == 0 && !versions.empty()) return versions.front();
  // Of which the engine may have something left.
  CIPHERD_RETURN_IF_ERROR(engine.FindProgram(name, version).status());
  return engine::WithReason(absl::UnavailableError("the program is being loaded or unloaded"),
                            engine::FailureReason::kUnavailable);
}

}  // namespace cipherd::server
