// Holds a stream of a host device: what is enqueued behind the gate does not run until it is
// released. For tests of ordering.
#pragma once

#include <memory>

#include "core/runtime/host/executor.h"
#include "core/runtime/host/host_stream.h"
#include "core/runtime/host/task_queue.h"

namespace cipherd::runtime::host {

class StreamGate {
 public:
  // `stream` must not capture. Its device must outlive the gate, the stream need not.
  explicit StreamGate(HostStream& stream);
  ~StreamGate() { Release(); }
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

  // Lets the stream go on. Idempotent.
  void Release();

 private:
  Executor& executor_;
  // Belongs to no executor: its one task runs at Release.
  const std::shared_ptr<TaskQueue> lock_;
};

}  // namespace cipherd::runtime::host
