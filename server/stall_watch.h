// Ends calls whose peer has stopped: sends no message that is waited for, or reads none that is
// sent.
//
//   StallWatch::Call stall(watch, mu_, [this] { OnStall(); });
//   stall.AwaitPeer();      // a read or a write has been started
//   stall.Rest();           // it is done
//
// One thread looks at all calls several times a second, so that a message costs an atomic store.
// Thread-safe. `on_stall` runs on that thread, at most once a wait, under the call's lock, under
// which its waits begin and end: not where the peer has moved before the thread had the lock. It
// must not block.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "server/engine/task_thread.h"

namespace cipherd::server {

class StallWatch {
 public:
  class Call {
   public:
    // `mu` outlives the call.
    Call(StallWatch& watch, absl::Mutex& mu, std::function<void()> on_stall);
    // `on_stall` is not running any more when this returns. Not under `mu`.
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // The peer has the watch's time from now on.
    void AwaitPeer();
    // Nothing is asked of the peer.
    void Rest() { deadline_ns_.store(kNever, std::memory_order_relaxed); }
    // The time of the latest wait is over: false where the peer has moved since, be it that another
    // wait has begun.
    bool has_stalled() const { return deadline_ns_.load(std::memory_order_relaxed) == kOver; }

   private:
    friend class StallWatch;
    static constexpr int64_t kNever = INT64_MAX;
    // No wait, either.
    static constexpr int64_t kOver = INT64_MAX - 1;

    StallWatch& watch_;
    absl::Mutex& mu_;
    const std::function<void()> on_stall_;
    std::atomic<int64_t> deadline_ns_ = kNever;
    std::list<Call*>::iterator position_;
  };

  // `clock` outlives the watch, and the watch its calls.
  StallWatch(absl::Duration timeout, const base::Clock& clock);
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // Ends what has stalled. Its thread does so by itself; tests call it after they moved the clock.
  void Check() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Duration timeout() const { return timeout_; }

 private:
  const absl::Duration timeout_;
  const base::Clock& clock_;
  absl::Mutex mu_;
  std::list<Call*> calls_ ABSL_GUARDED_BY(mu_);
  // Last, so that it ends first.
  engine::TaskThread thread_;
};

// DeadlineExceeded (stalled): what a call is told that waited for `what` too long.
absl::Status Stalled(const StallWatch& watch, std::string_view what);

}  // namespace cipherd::server
