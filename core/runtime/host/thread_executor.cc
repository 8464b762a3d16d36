#include "core/runtime/host/thread_executor.h"

#include <optional>
#include <utility>

namespace cipherd::runtime::host {
namespace {

void RunQueue(TaskQueue& queue) {
  while (std::optional<Task> task = queue.AwaitTask()) {
    if (task->wait_for.has_value()) task->wait_for->queue->AwaitPassed(task->wait_for->position);
    queue.Execute(*std::move(task));
  }
}

}  // namespace

void ThreadExecutor::Add(std::shared_ptr<TaskQueue> queue) {
  std::lock_guard lock(mu_);
  const TaskQueue* const key = queue.get();
  threads_.emplace(key, [queue = std::move(queue)] { RunQueue(*queue); });
}

void ThreadExecutor::DrainAndRemove(const std::shared_ptr<TaskQueue>& queue) {
  queue->Close();
  std::thread thread;
  {
    std::lock_guard lock(mu_);
    thread = std::move(threads_.at(queue.get()));
    threads_.erase(queue.get());
  }
  thread.join();
}

}  // namespace cipherd::runtime::host
