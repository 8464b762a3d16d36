// Counts every request exactly once on each side of
//   accepted = succeeded + failed + cancelled + rejected + in flight.
//
// A request is entered when its header arrives and closed at its terminal state; both sides are
// counted on their own, under one lock, so that a reader sees the equation hold at any moment or
// has found a fault. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/engine/request_state.h"

namespace cipherd::engine {

class RequestLedger {
 public:
  struct Counts {
    uint64_t accepted = 0;
    uint64_t in_flight = 0;
    // By terminal state and status code.
    std::map<std::pair<RequestState, absl::StatusCode>, uint64_t> finished;

    uint64_t FinishedIn(RequestState state) const;
    // Whether the equation above holds.
    bool Balances() const;
  };

  // `program` must be the name of a registered program or a fixed word for others, since it becomes
  // a metric's label.
  void Enter(std::string_view program) ABSL_LOCKS_EXCLUDED(mu_);
  void Close(std::string_view program, RequestState terminal, absl::StatusCode code)
      ABSL_LOCKS_EXCLUDED(mu_);

  // By program.
  std::map<std::string, Counts> Snapshot() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t in_flight() const ABSL_LOCKS_EXCLUDED(mu_);

  // Blocks until nothing is in flight; false after `timeout`.
  bool AwaitIdle(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  std::map<std::string, Counts, std::less<>> counts_ ABSL_GUARDED_BY(mu_);
  uint64_t in_flight_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace cipherd::engine
