// What a caller can do about a failure, carried in the payload of an absl::Status beside its code.
//
//   return WithReason(absl::NotFoundError("unknown program 'x'"), FailureReason::kUnknownProgram);
//
// The code says what class of thing went wrong; one code can have several remedies (a missing key
// and a program that is not loaded are both preconditions), and clients act on the remedy.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace cipherd::engine {

enum class FailureReason : uint8_t {
  kUnspecified,
  kUnknownProgram,
  kUnknownKeySet,  // not here, or not the caller's: upload it
  kMissingKey,     // the key set lacks a key that the program reads
  kWrongContext,   // the key set belongs to another context
  kLimitExceeded,  // a stated limit; trying again does not help
  kOverloaded,     // queue or memory is full: try again after a while
  kUnknownUpload,  // the upload that is to go on is not here: begin it again
  kStalled,        // the peer did not send or read in time
  kUnavailable,    // draining, not ready, or the device failed: try another or later
};

// `status` with `reason`; an OK status stays as it is.
absl::Status WithReason(absl::Status status, FailureReason reason);

// The reason of `status`, kUnspecified where it has none.
FailureReason ReasonOf(const absl::Status& status);

// `status` with how long to wait before another try; an OK status stays as it is. A failure that is
// overloaded and says nothing leaves it to the one who answers.
absl::Status WithRetryDelay(absl::Status status, absl::Duration delay);
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

// `status` as it was before WithReason and WithRetryDelay.
absl::Status WithoutReason(absl::Status status);

}  // namespace cipherd::engine
