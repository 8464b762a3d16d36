// The work of one host stream: closures in the order of submission, and how far they have come. It
// has no opinion on who runs them and when; executors do (executor.h).
//
//   const uint64_t position = queue->Push({.name = "copy", .run = ...});
//   ... on some thread: if (auto task = queue->TryPop()) queue->Execute(*std::move(task));
//   queue->AwaitPassed(position);
//
// A task that returns an error fails the queue: tasks behind it are dropped instead of run, and
// still count as passed, so that nobody waits for ever. A task that waits on another queue's
// position fails where that queue had failed before it. Thread-safe; one task runs at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/runtime/device_health.h"
#include "core/runtime/stream_progress.h"

namespace cipherd::runtime::host {

class TaskQueue;

// A point in the work of a queue.
struct QueuePosition {
  std::shared_ptr<TaskQueue> queue;
  uint64_t position = 0;
};

// When a record completed, in nanoseconds of the steady clock; 0 before.
struct TimeStamp {
  std::atomic<int64_t> nanoseconds{0};
};

struct Task {
  std::string_view name;
  // Empty for pure waits and records.
  std::function<absl::Status()> run = nullptr;
  // Runs only after this point.
  std::optional<QueuePosition> wait_for = std::nullopt;
  // Set when the task completes, also after a failure.
  std::shared_ptr<TimeStamp> completed_at = nullptr;

  uint64_t position = 0;  // set by Push
};

class TaskQueue final : public StreamProgress {
 public:
  TaskQueue(std::string_view name, std::shared_ptr<DeviceHealth> health)
      : name_(name), health_(std::move(health)) {}

  // Submission. Returns the position that has passed once the task has completed.
  uint64_t Push(Task task);

  uint64_t Mark() override;
  bool HasPassed(uint64_t position) override;
  // Blocks until somebody has executed everything up to `position`.
  void AwaitPassed(uint64_t position);

  // The error of the first task that failed, or OK.
  absl::Status status() const;

  // Execution. The next task, once there is one; nothing after Close when all are done.
  std::optional<Task> AwaitTask();
  // The next task, where there is one, nothing else of this queue runs and its wait has passed.
  std::optional<Task> TryPop();
  // What the next task waits for, where that has not passed.
  std::optional<QueuePosition> BlockedOn();
  // Runs a task popped from this queue. Its closure is destroyed before the task counts as passed.
  void Execute(Task task);
  // Ends AwaitTask.
  void Close();

  const std::string& name() const { return name_; }
  size_t pending_count() const;

 private:
  // The failure that work up to `position` had met, or OK.
  absl::Status FailureBefore(uint64_t position) const;

  const std::string name_;
  const std::shared_ptr<DeviceHealth> health_;

  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  uint64_t submitted_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t completed_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_running_ ABSL_GUARDED_BY(mu_) = false;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  uint64_t failed_at_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace cipherd::runtime::host
