#include "server/engine/completion_poller.h"

#include <sys/prctl.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/engine/spin.h"

namespace cipherd::engine {

CompletionPoller::CompletionPoller(Options options) : options_(options) {
  // By default the kernel adds up to 50 µs to every nap. Without this waits are merely longer.
  prctl(PR_SET_TIMERSLACK, 1UL);
}

absl::StatusOr<bool> CompletionPoller::Await(const runtime::Event& event, absl::Duration& expected,
                                             const std::atomic<bool>& give_up) {
  const absl::Time start = absl::Now();
  CIPHERD_ASSIGN_OR_RETURN(bool is_done, event.Query());
  // The expectation is a guess, and sleeps end late.
  const absl::Time spin_start = start + 0.95 * expected - options_.nap;
  const absl::Time spin_end = start + 1.05 * expected + options_.spin;
  while (!is_done) {
    if (give_up.load(std::memory_order_relaxed)) return false;
    const absl::Time now = absl::Now();
    if (now < spin_start) {
      // Not in one piece: work that ends early should not wait for a guess.
      absl::SleepFor(std::min(spin_start - now, std::max(options_.nap, expected / 8)));
    } else if (now < spin_end) {
      for (int i = 0; i < 16; ++i) PauseWhileSpinning();
    } else {
      absl::SleepFor(options_.nap);
    }
    CIPHERD_ASSIGN_OR_RETURN(is_done, event.Query());
  }
  expected = absl::Now() - start;
  return true;
}

}  // namespace cipherd::engine
