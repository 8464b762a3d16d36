// Threads that share the loops of kernels on the CPU device.
//
//   ThreadTeam::OfProcess().ForEach(limb_count, [&](int64_t limb) { Transform(limb); });
//
// The calling thread works, and members that are idle join it. A team bounds how many threads work
// in all its loops at once, callers included: streams that compute side by side share the
// processors in place of having each loop bring its own threads. A caller never waits for its turn;
// where it makes one too many, a member leaves its loop after the index at hand.
//
// Thread-safe; loops may run at the same time, but not inside one another.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace cipherd::runtime::host {

class ThreadTeam {
 public:
  // `worker_limit` threads at most work at once; the team starts one less, since callers work too.
  explicit ThreadTeam(int worker_limit);
  // No loop may be running.
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // The one that kernels use: as many workers as processors that this process may run on. Started
  // at the first call, never stopped.
  static ThreadTeam& OfProcess();

  // Calls body(0), …, body(count - 1), each once, in any order and on any threads, and returns when
  // all have returned. What they wrote is then visible to the caller. `body` must not throw.
  void ForEach(int64_t count, absl::FunctionRef<void(int64_t)> body) ABSL_LOCKS_EXCLUDED(mu_);

  int worker_limit() const { return worker_limit_; }

 private:
  struct Loop {
    Loop(int64_t total, absl::FunctionRef<void(int64_t)> loop_body)
        : count(total), body(loop_body) {}

    // Takes an index and visits it; false where none is left.
    bool VisitNext();
    bool IsTaken() const { return next.load(std::memory_order_relaxed) >= count; }

    const int64_t count;
    const absl::FunctionRef<void(int64_t)> body;
    std::atomic<int64_t> next = 0;
    // Members at work on it. Guarded by the team's mu_.
    int members = 0;
  };

  void RunMember() ABSL_LOCKS_EXCLUDED(mu_);
  // A loop that still has indices, if one more thread may work.
  Loop* FindWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The condition of idle members, the same for all of them: found_ has work, or there is none to
  // wait for.
  bool FindsWorkOrQuits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    found_ = FindWork();
    return quits_ || found_ != nullptr;
  }

  const int worker_limit_;
  absl::Mutex mu_;
  std::list<Loop*> loops_ ABSL_GUARDED_BY(mu_);
  // What the latest FindsWorkOrQuits saw: alive while the lock that it ran under is held.
  Loop* found_ ABSL_GUARDED_BY(mu_) = nullptr;
  // Callers and members at work. Written under mu_.
  std::atomic<int> working_ = 0;
  bool quits_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> members_;
};

}  // namespace cipherd::runtime::host
