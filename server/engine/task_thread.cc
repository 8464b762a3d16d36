#include "server/engine/task_thread.h"

#include <pthread.h>

#include <utility>

#include "absl/time/clock.h"

namespace cipherd::engine {

TaskThread::TaskThread(std::string_view name, Chore chore)
    : chore_(std::move(chore)), thread_([this] { Run(); }) {
  // As debuggers show it: 15 characters.
  pthread_setname_np(thread_.native_handle(), std::string(name.substr(0, 15)).c_str());
}

TaskThread::~TaskThread() { Stop(); }

bool TaskThread::Post(std::function<void()> task) {
  absl::MutexLock lock(&mu_);
  if (is_stopped_) return false;
  tasks_.push_back(std::move(task));
  changed_.Signal();
  return true;
}

void TaskThread::Stop() {
  {
    absl::MutexLock lock(&mu_);
    is_stopped_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void TaskThread::Run() {
  absl::Time next_chore = absl::Now() + chore_.interval;
  while (true) {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mu_);
      while (tasks_.empty() && !is_stopped_ && absl::Now() < next_chore) {
        changed_.WaitWithDeadline(&mu_, next_chore);
      }
      if (!tasks_.empty()) {
        work = std::move(tasks_.front());
        tasks_.pop_front();
      } else if (is_stopped_) {
        return;
      } else {
        next_chore = absl::Now() + chore_.interval;
        work = chore_.run;
      }
    }
    work();
  }
}

}  // namespace cipherd::engine
