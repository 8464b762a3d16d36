// A device for tests, whose streams advance only when the test says so.
//
//   std::unique_ptr<PuppetDevice> device = PuppetDevice::Open({}, options).value();
//   ... enqueue a copy on *transfer and a reader on *compute ...
//   device->RunUntilIdle(*compute);   // the reader first: what if the wait was forgotten?
//   device->RunAll();
//
// Everything but the executor is the CPU device: streams, events, capture, graphs, pools. Work runs
// on the thread that asks for it. A blocking call (Synchronize, a destructor) runs what it needs
// itself, in the order that PuppetOptions chooses; what it does not need shows its worst. Where
// what it needs is held (StreamGate), it blocks until another thread releases the hold.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "core/runtime/host/host_device.h"
#include "core/runtime/host/puppet_executor.h"

namespace cipherd::runtime::host {

struct PuppetOptions {
  PuppetOrder order = PuppetOrder::kLate;
  // Whether a query that answers "not yet" runs one task towards what it asked for, so that loops
  // of queries end. Off for tests that step by hand.
  bool advances_on_query = false;
};

class PuppetDevice final : public HostDevice {
 public:
  static absl::StatusOr<std::unique_ptr<PuppetDevice>> Open(const PuppetOptions& puppet_options,
                                                            const DeviceOptions& options);

  // Runs the next task of `stream` (one enqueued copy, fill, kernel, record, wait or graph launch)
  // where it does not wait for another stream. Whether it did.
  bool Step(Stream& stream);
  // Runs `stream` until it is empty or waits for another stream. Returns the number of tasks run.
  size_t RunUntilIdle(Stream& stream);
  // Runs all streams, newest first, until nothing may run. Returns the number of tasks run.
  size_t RunAll();
  // Tasks of `stream` that have not completed.
  size_t PendingCount(Stream& stream) const;

 private:
  PuppetDevice(DeviceProperties properties, std::unique_ptr<PuppetExecutor> executor);

  PuppetExecutor& puppet_;
};

}  // namespace cipherd::runtime::host
