// What the command line of the soak asks for.
#pragma once

#include "absl/time/time.h"

namespace cipherd::testing {

// Of the mixed load.
absl::Duration SoakDuration();

// Whether figures are judged that say something on a machine with nothing else to do only.
bool IsMeasurement();

}  // namespace cipherd::testing
