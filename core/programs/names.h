// What programs, their inputs, edges and outputs may be called.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace cipherd::programs {

// Of programs too.
inline constexpr size_t kMaxEdgeNameBytes = 64;

// [A-Za-z0-9_.-]: the characters of an edge's name.
bool IsEdgeNameCharacter(char c);

// InvalidArgument unless `name` is 1 to 64 of [a-z0-9_-].
absl::Status CheckProgramName(std::string_view name);

// InvalidArgument unless `name` is 1 to 64 of the characters above: inputs, edges, outputs.
absl::Status CheckEdgeName(std::string_view name);

}  // namespace cipherd::programs
