// Who runs the queues of a host device, and when: the only difference between the CPU device and
// the puppet.
#pragma once

#include <cstdint>
#include <memory>

#include "core/runtime/host/task_queue.h"

namespace cipherd::runtime::host {

// Thread-safe. The device that owns it outlives every queue in it.
class Executor {
 public:
  virtual ~Executor() = default;

  // From now on the tasks of `queue` are run, in its order.
  virtual void Add(std::shared_ptr<TaskQueue> queue) = 0;

  // Blocks until `queue` is empty, and forgets it.
  virtual void DrainAndRemove(const std::shared_ptr<TaskQueue>& queue) = 0;

  // Blocks the calling thread until `point` has passed.
  virtual void Await(const QueuePosition& point) = 0;

  // Whether `point` has passed. Never blocks.
  virtual bool Poll(const QueuePosition& point) = 0;

  // Something changed that a blocked Await may be waiting for: work was pushed, a hold was
  // released.
  virtual void Notify() = 0;

  // Whether captured nodes that do not depend on each other are replayed in reverse.
  virtual bool reverses_graphs() const = 0;
};

}  // namespace cipherd::runtime::host
