// A thread that runs tasks one after another: for work that blocks and must not block others.
//
//   TaskThread disk("key files", {.interval = absl::Minutes(1), .run = [&] { Sweep(); }});
//   disk.Post([&] { ... });
//
// Thread-safe. Tasks must not destroy the thread.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace cipherd::engine {

// Something to run between tasks, about every `interval`.
struct Chore {
  absl::Duration interval = absl::InfiniteDuration();
  std::function<void()> run;
};

class TaskThread {
 public:
  explicit TaskThread(std::string_view name, Chore chore = {});
  // Stops.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // False, without running it, once stopped.
  bool Post(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);

  // Runs what has been posted, and then joins. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  const Chore chore_;
  absl::Mutex mu_;
  absl::CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace cipherd::engine
