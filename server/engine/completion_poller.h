// Waits for events of a device by asking for them: without a host function on the stream (which
// would hold later copies up and cost the driver's thread), and within microseconds of the end.
//
//   CompletionPoller poller;                       // of one thread
//   CIPHERD_ASSIGN_OR_RETURN(bool done, poller.Await(*event, instance.expected_wait(), give_up));
//
// The thread sleeps until shortly before the end that the latest wait of this kind leads it to
// expect, then spins for a moment, then naps. Where nothing is in flight nobody polls.
#pragma once

#include <atomic>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/runtime/event.h"

namespace cipherd::engine {

class CompletionPoller {
 public:
  struct Options {
    // So long it spins for one event, beside a tenth of the time that the event was expected to
    // take.
    absl::Duration spin = absl::Microseconds(100);
    // Between two looks when that was not enough.
    absl::Duration nap = absl::Microseconds(20);
  };

  // To be made by the thread that will wait: naps are that thread's timers.
  CompletionPoller() : CompletionPoller(Options()) {}
  explicit CompletionPoller(Options options);

  // True once `event` has completed; false once `give_up` is set; else the device's error.
  // `expected` is how long the wait is likely to take, and becomes what it took.
  absl::StatusOr<bool> Await(const runtime::Event& event, absl::Duration& expected,
                             const std::atomic<bool>& give_up);

 private:
  const Options options_;
};

}  // namespace cipherd::engine
