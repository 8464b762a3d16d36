// A point in a stream's work.
//
//   ASSIGN_OR_RETURN(std::shared_ptr<Event> copied, device.CreateEvent());
//   transfer.Record(*copied);      // after what is enqueued on `transfer` so far
//   compute.Wait(*copied);         // later work on `compute` comes after it; the CPU goes on
//
// An event can be recorded again at any time. A wait binds to the record that it saw when it was
// enqueued; an event which was never recorded counts as complete. Dropping an event while waits on
// it are pending is allowed. Thread-safe.
//
// A record made inside a capture stands for that capture only: streams that wait on it join the
// capture, and once that has ended, waits and queries are FailedPrecondition until the event is
// recorded again. What is recorded for the launches of a graph (Stream::RecordInLaunches) is an
// ordinary record of each launch.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cipherd::runtime {

class Device;

class Event {
 public:
  virtual ~Event() = default;

  virtual Device& device() const = 0;

  // Whether the latest record has completed. Never blocks. FailedPrecondition inside a capture of
  // this thread (and the capture is invalidated); the device's error if it failed.
  virtual absl::StatusOr<bool> Query() const = 0;

  // Blocks the calling thread until the latest record has completed. Errors as for Query.
  virtual absl::Status Synchronize() const = 0;

  // Seconds between the completions of the latest records of `start` and of this event; both must
  // be complete. FailedPrecondition where either is not, or was never recorded.
  virtual absl::StatusOr<double> SecondsSince(const Event& start) const = 0;
};

}  // namespace cipherd::runtime
