#include "client/work_pool.h"

#include <algorithm>
#include <utility>

namespace cipherd::client {
namespace {

constexpr int kMaxThreads = 8;

}  // namespace

WorkPool::WorkPool(int thread_count) {
  for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this] { Run(); });
}

WorkPool::~WorkPool() {
  {
    absl::MutexLock lock(&mu_);
    is_ending_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

WorkPool& WorkPool::OfProcess() {
  // Never destroyed: threads may work while the process ends. Volatile, so that it stays reachable
  // in the eyes of leak checkers.
  static WorkPool* volatile pool = new WorkPool(
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads));
  return *pool;
}

void WorkPool::Schedule(std::function<void()> work) {
  absl::MutexLock lock(&mu_);
  queue_.push_back(std::move(work));
}

void WorkPool::Run() {
  while (true) {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &WorkPool::HasWorkOrEnds));
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace cipherd::client
