#include "client/load/timer_queue.h"

#include <utility>

#include "absl/time/clock.h"

namespace cipherd::client {

TimerQueue::TimerQueue() : thread_([this] { Run(); }) {}

TimerQueue::~TimerQueue() {
  {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
    changed_.Signal();
  }
  thread_.join();
}

void TimerQueue::RunAfter(absl::Duration delay, std::function<void()> function) {
  absl::MutexLock lock(&mu_);
  due_.emplace(absl::Now() + delay, std::move(function));
  changed_.Signal();
}

void TimerQueue::Run() {
  while (true) {
    std::function<void()> function;
    {
      absl::MutexLock lock(&mu_);
      while (!is_stopping_ && (due_.empty() || due_.begin()->first > absl::Now())) {
        changed_.WaitWithDeadline(&mu_,
                                  due_.empty() ? absl::InfiniteFuture() : due_.begin()->first);
      }
      if (is_stopping_) return;
      function = std::move(due_.extract(due_.begin()).mapped());
    }
    function();
  }
}

}  // namespace cipherd::client
