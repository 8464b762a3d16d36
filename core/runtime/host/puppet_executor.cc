#include "core/runtime/host/puppet_executor.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace cipherd::runtime::host {

void PuppetExecutor::Add(std::shared_ptr<TaskQueue> queue) {
  std::lock_guard lock(mu_);
  queues_.push_back(std::move(queue));
}

void PuppetExecutor::DrainAndRemove(const std::shared_ptr<TaskQueue>& queue) {
  Await({queue, queue->Mark()});
  queue->Close();
  std::lock_guard lock(mu_);
  std::erase(queues_, queue);
}

void PuppetExecutor::Await(const QueuePosition& point) {
  while (true) {
    uint64_t seen = 0;
    {
      std::lock_guard lock(mu_);
      seen = change_count_;
    }
    if (point.queue->HasPassed(point.position)) return;
    if (Advance(point)) continue;
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return change_count_ != seen; });
  }
}

bool PuppetExecutor::Poll(const QueuePosition& point) {
  if (point.queue->HasPassed(point.position)) return true;
  if (advances_on_query_) Advance(point);
  return false;
}

void PuppetExecutor::Notify() {
  std::lock_guard lock(mu_);
  ++change_count_;
  changed_.notify_all();
}

bool PuppetExecutor::Step(TaskQueue& queue) {
  std::optional<Task> task = queue.TryPop();
  if (!task.has_value()) return false;
  queue.Execute(*std::move(task));
  Notify();
  return true;
}

bool PuppetExecutor::StepAny() {
  for (const std::shared_ptr<TaskQueue>& queue : Queues()) {
    if (Step(*queue)) return true;
  }
  return false;
}

bool PuppetExecutor::Advance(const QueuePosition& point) {
  const std::vector<std::shared_ptr<TaskQueue>> chain = ChainTo(point);
  const std::vector<std::shared_ptr<TaskQueue>> queues = Queues();
  if (order_ == PuppetOrder::kEager) {
    for (const std::shared_ptr<TaskQueue>& queue : queues) {
      const bool is_needed = std::find(chain.begin(), chain.end(), queue) != chain.end();
      if (!is_needed && Step(*queue)) return true;
    }
  }
  // The end of the chain may be the lock of a gate, which is no queue of this executor: only its
  // owner releases it.
  if (std::find(queues.begin(), queues.end(), chain.back()) == queues.end()) return false;
  return Step(*chain.back());
}

std::vector<std::shared_ptr<TaskQueue>> PuppetExecutor::ChainTo(const QueuePosition& point) {
  std::vector<std::shared_ptr<TaskQueue>> chain{point.queue};
  // Ends: each wait is on a point that was recorded before it.
  while (const std::optional<QueuePosition> blocker = chain.back()->BlockedOn()) {
    chain.push_back(blocker->queue);
  }
  return chain;
}

std::vector<std::shared_ptr<TaskQueue>> PuppetExecutor::Queues() {
  std::lock_guard lock(mu_);
  return {queues_.rbegin(), queues_.rend()};
}

}  // namespace cipherd::runtime::host
