// Runs functions at later times, all on one thread.
//
//   TimerQueue timers;
//   timers.RunAfter(absl::Milliseconds(20), [call] { call->Cancel(); });
//
// Functions must be short. What is not due yet when the queue is destroyed does not run.
// Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace cipherd::client {

class TimerQueue {
 public:
  TimerQueue();
  // Waits for a function that runs.
  ~TimerQueue();
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  void RunAfter(absl::Duration delay, std::function<void()> function) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  absl::CondVar changed_;
  std::multimap<absl::Time, std::function<void()>> due_ ABSL_GUARDED_BY(mu_);
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace cipherd::client
