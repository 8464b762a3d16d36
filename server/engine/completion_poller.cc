#include "server/engine/completion_poller.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/engine/spin.h"

namespace cipherd::engine {

CompletionPoller::CompletionPoller(Options options) : options_(options) {
  // By default the kernel adds up to 50 µs to every nap. Without this waits are merely longer.
  prctl(PR_SET_TIMERSLACK, 1UL);
}

absl::StatusOr<bool> CompletionPoller::Await(std::span<const runtime::Event* const> events,
                                             absl::Duration& expected,
                                             const std::atomic<bool>& give_up,
                                             const Listener& listener, absl::Duration awake) {
  const absl::Time start = absl::Now();
  size_t next = 0;
  const auto look = [&]() -> absl::StatusOr<bool> {
    CIPHERD_ASSIGN_OR_RETURN(bool is_done, events.back()->Query());
    while (!is_done && next + 1 < events.size()) {
      CIPHERD_ASSIGN_OR_RETURN(const bool is_next_done, events[next]->Query());
      if (!is_next_done) break;
      if (listener.on_completed) listener.on_completed(next);
      ++next;
      CIPHERD_ASSIGN_OR_RETURN(is_done, events.back()->Query());
    }
    return is_done;
  };
  CIPHERD_ASSIGN_OR_RETURN(bool is_done, look());
  // The expectation is a guess, and sleeps end late.
  const absl::Time spin_start = start + std::min(0.95 * expected - options_.nap, expected - awake);
  const absl::Time spin_end = start + 1.05 * expected + options_.spin;
  const absl::Time near_end = start + expected - options_.near_end;
  bool is_near = false;
  while (!is_done) {
    if (give_up.load(std::memory_order_relaxed)) return false;
    const absl::Time now = absl::Now();
    if (now >= near_end && !std::exchange(is_near, true) && listener.on_near_end) {
      listener.on_near_end();
    }
    if (now < spin_start) {
      // Not in one piece: work that ends early should not wait for a guess.
      const absl::Time next_look = is_near ? spin_start : std::min(spin_start, near_end);
      const bool is_awaited = next + 2 < events.size();
      const absl::Duration nap = std::max(
          options_.nap, is_awaited ? std::min(expected / 8, options_.longest_nap) : expected / 8);
      absl::SleepFor(std::min(next_look - now, nap));
    } else if (now < spin_end) {
      // Asking the driver takes long enough.
      for (int i = 0; i < 2; ++i) PauseWhileSpinning();
    } else {
      absl::SleepFor(options_.nap);
    }
    CIPHERD_ASSIGN_OR_RETURN(is_done, look());
  }
  expected = absl::Now() - start;
  return true;
}

}  // namespace cipherd::engine
