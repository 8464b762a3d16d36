// Waits for events of a device by asking for them: without a host function on the stream (which
// would hold later copies up and cost the driver's thread), and within microseconds of the end.
//
//   CompletionPoller poller;                       // of one thread
//   CIPHERD_ASSIGN_OR_RETURN(bool done, poller.Await({&replayed, &copied}, expected, give_up, {}));
//
// The thread sleeps until shortly before the end that the latest wait of this kind leads it to
// expect, or for as long before as it is asked to be awake, then spins for a moment, then naps.
// Where nothing is in flight nobody polls.
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/runtime/event.h"

namespace cipherd::engine {

class CompletionPoller {
 public:
  struct Options {
    // So long it spins, beside a tenth of the time that the wait was expected to take.
    absl::Duration spin = absl::Microseconds(100);
    // So long before the expected end it is said to be near.
    absl::Duration near_end = absl::Microseconds(100);
    // Between two looks when spinning was not enough.
    absl::Duration nap = absl::Microseconds(20);
    // At most, while there is an event that somebody waits for before the last two.
    absl::Duration longest_nap = absl::Microseconds(200);
  };

  // What happens on the way, on the waiting thread; either may be empty.
  struct Listener {
    // Once, while the end seems near: others can get ready for what follows.
    std::function<void()> on_near_end;
    // That event has been seen to be complete, and a later one has not: work for the time between.
    std::function<void(size_t event)> on_completed;
  };

  // To be made by the thread that will wait: naps are that thread's timers.
  CompletionPoller() : CompletionPoller(Options()) {}
  explicit CompletionPoller(Options options);

  // True once the last of `events` has completed, which are looked at in their order; false once
  // `give_up` is set; else the device's error. `expected` is how long the wait is likely to take,
  // and becomes what it took. From `awake` before then on the thread does not sleep: a processor
  // that has slept is slow when the end comes.
  absl::StatusOr<bool> Await(std::span<const runtime::Event* const> events,
                             absl::Duration& expected, const std::atomic<bool>& give_up,
                             const Listener& listener, absl::Duration awake = absl::ZeroDuration());

 private:
  const Options options_;
};

}  // namespace cipherd::engine
