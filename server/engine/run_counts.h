// How the batches of a program have run: by replay, one count a batch size, or otherwise.
//
//   counts.CountReplay(/*batch_size=*/4);
//   for (const auto& [batch_size, count] : counts.replays()) { ... }
//
// Counted at the end of each batch. Thread-safe.
#pragma once

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace cipherd::engine {

class RunCounts {
 public:
  void CountReplay(int batch_size) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    ++replays_[batch_size];
  }
  // Of a batch whose graph was not launched: its kernels cost a launch each. The engine has no such
  // path, so that one that creeps in shows.
  void CountEagerRun() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    ++eager_runs_;
  }

  std::map<int, uint64_t> replays() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return replays_;
  }
  uint64_t eager_runs() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return eager_runs_;
  }

 private:
  mutable absl::Mutex mu_;
  // By batch size.
  std::map<int, uint64_t> replays_ ABSL_GUARDED_BY(mu_);
  uint64_t eager_runs_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace cipherd::engine
