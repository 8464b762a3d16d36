// Which version of a program a call is about: the one that it names, or the newest that is ready.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/engine/engine.h"
#include "server/program_registry.h"

namespace cipherd::server {

// Where `version` is 0 and none is ready, the newest. NotFound naming what is not here; Unavailable
// while it is being loaded or unloaded. The next call may get another one: versions come and go.
absl::StatusOr<RegisteredProgramPtr> FindProgramVersion(const ProgramRegistry& programs,
                                                        const engine::Engine& engine,
                                                        std::string_view name, uint32_t version);

}  // namespace cipherd::server
