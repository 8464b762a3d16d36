// A fixed number of threads that encrypt and decrypt while calls are under way.
//
//   WorkPool::OfProcess().Schedule([=] { ... });
//
// Work is taken in order and must not wait for other work of the pool. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace cipherd::client {

class WorkPool {
 public:
  explicit WorkPool(int thread_count);
  // Ends after all that was scheduled; not called by the pool's own threads.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // A thread a processor, eight at most. Started at the first call, never stopped.
  static WorkPool& OfProcess();

  void Schedule(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasWorkOrEnds() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_ending_ || !queue_.empty();
  }

  absl::Mutex mu_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace cipherd::client
