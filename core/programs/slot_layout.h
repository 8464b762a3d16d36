// Whether a layout names slots that exist, each once. Internal to the checker.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "core/programs/program_spec.h"

namespace cipherd::programs::internal {

// InvalidArgument, beginning with "layout: ", where a count or stride is below 1, a slot is at or
// beyond `slot_count`, or two numbers share one.
absl::Status CheckLayout(const SlotLayout& layout, int64_t slot_count);

}  // namespace cipherd::programs::internal
