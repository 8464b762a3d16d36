// What the command line of the soak asks for.
#pragma once

#include "absl/time/time.h"

namespace cipherd::testing {

// Of the mixed load. Set by --seconds=N before the tests run.
absl::Duration SoakDuration();

}  // namespace cipherd::testing
