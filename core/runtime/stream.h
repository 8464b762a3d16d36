// A first-in first-out queue of device work.
//
//   stream.CopyAsync(device_tensor, pinned, bytes);
//   kernels.forward_ntt(..., stream);
//   stream.Record(*done);
//
// Every function below only enqueues, unless it says that it blocks. The first error of a stream
// sticks: later calls return it again and what is enqueued after the failure does not run. A stream
// is thread-compatible: one thread at a time submits to it. It must be destroyed before its device,
// and its destructor waits for its work. There is no default stream.
//
// Capture. Between BeginCapture and EndCapture the work of this stream is recorded into a graph
// instead of executed. A stream that waits on an event recorded in a capturing stream joins the
// capture; it must be waited for by the capturing stream before EndCapture. On the thread that
// began a capture it is forbidden, until EndCapture, to synchronise or query any stream or event,
// and to allocate device or pinned memory other than on a stream of the capture: such a call
// returns FailedPrecondition, invalidates the capture, and EndCapture then fails naming the call.
// The same holds for waiting on an event that was recorded outside, and for launching a graph on a
// stream of the capture. A capture ends on the thread that began it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/runtime/event.h"
#include "core/runtime/graph.h"
#include "core/runtime/stream_progress.h"

namespace cipherd::runtime {

class Device;

// A range of device memory that a piece of work touches.
struct MemoryAccess {
  const void* address;
  size_t bytes;
  bool is_write;
};

class Stream {
 public:
  virtual ~Stream() = default;

  virtual Device& device() const = 0;
  virtual const std::string& name() const = 0;

  // What the memory pools ask to know when work of this stream has passed. A stream that wraps
  // another one returns that one's.
  virtual std::shared_ptr<StreamProgress> progress() const = 0;

  // Copies `bytes` between any two memory spaces; ranges must not overlap. Asynchronous also from
  // and to pageable memory on the CPU device; on CUDA a pageable side is staged by the driver,
  // which may block. The caller keeps both blocks until the copy is done. A pageable side is
  // refused inside a capture (FailedPrecondition, and the capture is invalidated).
  virtual absl::Status CopyAsync(void* destination, const void* source, size_t bytes) = 0;

  // Sets `bytes` bytes of device or pinned memory of this device to `value`. InvalidArgument for
  // other memory.
  virtual absl::Status FillAsync(void* destination, uint8_t value, size_t bytes) = 0;

  // Makes `event` (of this device) stand for everything enqueued here so far.
  virtual absl::Status Record(Event& event) = 0;

  // The same, and inside a capture: each launch of the graph records `event` anew as it gets here,
  // so that work outside can wait for a part of the graph. Launching is when that record is made: a
  // wait that is enqueued after a launch binds to it. Until the first launch the event is as it was
  // before. The graph keeps the event. Inside the capture a stream does not wait for it: that is
  // what Record is for. InvalidArgument for null and for an event of another device.
  virtual absl::Status RecordInLaunches(std::shared_ptr<Event> event) = 0;

  // Later work of this stream runs after the latest record of `event`. InvalidArgument for an event
  // of another device.
  virtual absl::Status Wait(const Event& event) = 0;

  // Runs `function` on a thread of the runtime after everything enqueued so far. It must be short
  // and must not call the runtime; hand over to another thread for more. Later work waits for it.
  virtual absl::Status LaunchHost(std::function<void()> function) = 0;

  // Whether everything enqueued has completed. Never blocks.
  virtual absl::StatusOr<bool> Query() = 0;

  // Blocks the calling thread until everything enqueued has completed.
  virtual absl::Status Synchronize() = 0;

  // The first error of this stream, or OK. Never blocks.
  virtual absl::Status status() const = 0;

  // Starts a capture with this stream as its origin. FailedPrecondition where this stream or this
  // thread captures already. `check_liveness` makes the graph keep track of the blocks outside its
  // pool that captured work touches (Graph::CheckLiveness).
  virtual absl::Status BeginCapture(bool check_liveness) = 0;

  // Ends the capture begun on this stream and returns the executable graph. Where the capture was
  // invalidated or a forked stream has not rejoined: Internal, naming the cause; the pool of the
  // capture is given back and all its streams are usable again.
  virtual absl::StatusOr<std::unique_ptr<Graph>> EndCapture() = 0;

  virtual bool is_capturing() const = 0;

  // Tells a capture which device memory the next work touches. Called by whatever launches kernels;
  // copies and fills declare themselves. No-op outside a capture. Where liveness is checked and a
  // range lies in a block that is not live: FailedPrecondition and the capture is invalidated.
  virtual absl::Status DeclareAccess(std::span<const MemoryAccess> accesses) = 0;
};

}  // namespace cipherd::runtime
