// The states of one evaluation request, from its header to its reply.
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>

#include "absl/status/status.h"

namespace cipherd::engine {

// Legal transitions, and who alone may make the next one:
//
//   kReceiving ------> kQueued ------> kExecuting ------> kReplying ------> kSucceeded
//   (the RPC)        (scheduler)       (worker)           (the RPC)
//       |                |                 |                  |
//       +----------------+-----------------+------------------+----> kFailed     deadline; from
//       |                |                 |                  |                  kExecuting on:
//       fault
//       +----------------+-----------------+------------------+----> kCancelled  the caller left
//       |                |
//       +----------------+-----------------------------------------> kRejected   bad value, full
//       queue,
//                                                                                draining
//
// The one in charge of a state also owns the request's leases in it: nobody else reads or returns
// them. A cancellation takes effect at once in kQueued, and elsewhere where its owner next looks.
enum class RequestState : uint8_t {
  kReceiving,
  kQueued,
  kExecuting,
  kReplying,
  kSucceeded,
  kFailed,
  kCancelled,
  kRejected,
};
inline constexpr int kRequestStateCount = 8;

constexpr bool IsTerminal(RequestState state) { return state >= RequestState::kSucceeded; }

// Whether the table above has the transition.
bool CanAdvance(RequestState from, RequestState to);

// The terminal state of a request that ends with `status` in state `from` (not terminal): OK only
// from kReplying, DEADLINE_EXCEEDED is kFailed and CANCELLED kCancelled everywhere, anything else
// is kRejected before execution and kFailed after.
RequestState TerminalStateFor(RequestState from, const absl::Status& status);

// "receiving", "queued", …
std::string_view ToString(RequestState state);
inline std::ostream& operator<<(std::ostream& out, RequestState state) {
  return out << ToString(state);
}

}  // namespace cipherd::engine
