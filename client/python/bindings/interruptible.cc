#include "client/python/bindings/interruptible.h"

#include "absl/time/time.h"

namespace cipherd::python {
namespace {

namespace nb = nanobind;

constexpr absl::Duration kSignalPoll = absl::Milliseconds(50);

}  // namespace

void AwaitInterruptibly(const absl::Notification& has_ended, client::Cancellation& cancellation) {
  while (true) {
    {
      const nb::gil_scoped_release release;
      if (has_ended.WaitForNotificationWithTimeout(kSignalPoll)) return;
    }
    // In other threads than the main one it does nothing.
    if (PyErr_CheckSignals() == 0) continue;
    nb::python_error raised;
    cancellation.Cancel();
    {
      const nb::gil_scoped_release release;
      has_ended.WaitForNotification();
    }
    throw raised;
  }
}

}  // namespace cipherd::python
