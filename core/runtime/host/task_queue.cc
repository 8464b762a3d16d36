#include "core/runtime/host/task_queue.h"

#include <chrono>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cipherd::runtime::host {
namespace {

int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Closures come from all layers: an exception of the standard library ends here as a failed task.
absl::Status RunClosure(const std::function<absl::Status()>& closure) {
  try {
    return closure();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("exception: ", error.what()));
  }
}

}  // namespace

uint64_t TaskQueue::Push(Task task) {
  std::lock_guard lock(mu_);
  task.position = ++submitted_;
  tasks_.push_back(std::move(task));
  changed_.notify_all();
  return submitted_;
}

uint64_t TaskQueue::Mark() {
  std::lock_guard lock(mu_);
  return submitted_;
}

bool TaskQueue::HasPassed(uint64_t position) {
  std::lock_guard lock(mu_);
  return completed_ >= position;
}

void TaskQueue::AwaitPassed(uint64_t position) {
  std::unique_lock lock(mu_);
  changed_.wait(lock, [&] { return completed_ >= position; });
}

absl::Status TaskQueue::status() const {
  std::lock_guard lock(mu_);
  return failure_;
}

absl::Status TaskQueue::FailureBefore(uint64_t position) const {
  std::lock_guard lock(mu_);
  return failed_at_ <= position ? failure_ : absl::OkStatus();
}

std::optional<Task> TaskQueue::AwaitTask() {
  std::unique_lock lock(mu_);
  changed_.wait(lock, [&] { return !tasks_.empty() || is_closed_; });
  if (tasks_.empty()) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  is_running_ = true;
  return task;
}

std::optional<Task> TaskQueue::TryPop() {
  std::optional<QueuePosition> wait_for;
  uint64_t position = 0;
  {
    std::lock_guard lock(mu_);
    if (tasks_.empty() || is_running_) return std::nullopt;
    wait_for = tasks_.front().wait_for;
    position = tasks_.front().position;
  }
  // Asked without holding this queue's lock: two queues may wait on each other's earlier work.
  if (wait_for.has_value() && !wait_for->queue->HasPassed(wait_for->position)) return std::nullopt;
  std::lock_guard lock(mu_);
  if (tasks_.empty() || is_running_ || tasks_.front().position != position) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  is_running_ = true;
  return task;
}

std::optional<QueuePosition> TaskQueue::BlockedOn() {
  std::optional<QueuePosition> wait_for;
  {
    std::lock_guard lock(mu_);
    if (tasks_.empty()) return std::nullopt;
    wait_for = tasks_.front().wait_for;
  }
  if (!wait_for.has_value() || wait_for->queue->HasPassed(wait_for->position)) return std::nullopt;
  return wait_for;
}

void TaskQueue::Execute(Task task) {
  absl::Status result = status();
  const bool had_failed = !result.ok();
  if (!had_failed && task.wait_for.has_value()) {
    result = task.wait_for->queue->FailureBefore(task.wait_for->position);
  }
  if (result.ok() && task.run != nullptr) result = RunClosure(task.run);
  task.run = nullptr;
  task.wait_for.reset();
  if (!had_failed && !result.ok()) {
    result =
        absl::Status(result.code(), absl::StrCat("stream '", name_, "', ", std::string(task.name),
                                                 ": ", std::string(result.message())));
    health_->Report(result);
  }
  if (task.completed_at != nullptr) task.completed_at->nanoseconds = SteadyNanoseconds();
  std::lock_guard lock(mu_);
  if (!had_failed && !result.ok()) {
    failure_ = result;
    failed_at_ = task.position;
  }
  completed_ = task.position;
  is_running_ = false;
  changed_.notify_all();
}

void TaskQueue::Close() {
  std::lock_guard lock(mu_);
  is_closed_ = true;
  changed_.notify_all();
}

size_t TaskQueue::pending_count() const {
  std::lock_guard lock(mu_);
  return submitted_ - completed_;
}

}  // namespace cipherd::runtime::host
