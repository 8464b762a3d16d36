// One thread a stream: the executor of the CPU device.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "core/runtime/host/executor.h"

namespace cipherd::runtime::host {

class ThreadExecutor final : public Executor {
 public:
  void Add(std::shared_ptr<TaskQueue> queue) override;
  void DrainAndRemove(const std::shared_ptr<TaskQueue>& queue) override;
  void Await(const QueuePosition& point) override { point.queue->AwaitPassed(point.position); }
  bool Poll(const QueuePosition& point) override { return point.queue->HasPassed(point.position); }
  void Notify() override {}
  bool reverses_graphs() const override { return false; }

 private:
  std::mutex mu_;
  std::map<const TaskQueue*, std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::runtime::host
