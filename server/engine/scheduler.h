// Which request runs next: one bounded first-in first-out queue a program, drained by the workers.
//
//   CIPHERD_RETURN_IF_ERROR(scheduler.Enqueue(request));              // any thread
//   while (RequestPtr request = scheduler.Take(quit, claim)) ...      // a worker's device thread
//
// Workers pull: whichever can start a request first takes it. Programs take turns. A request whose
// deadline passes in the queue is finished by whoever looks at the queue next, at the latest by a
// waiting worker at that moment. Thread-safe; Take blocks, nothing else does. Continuations of
// requests that end here run without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "server/engine/request.h"

namespace cipherd::engine {

class Scheduler {
 public:
  // At most `queue_capacity` requests of each program wait, those included that an idle worker has
  // not picked up yet.
  Scheduler(int queue_capacity, const base::Clock& clock)
      : queue_capacity_(queue_capacity), clock_(clock) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void AddProgram(const ServedProgram& program);

  // kReceiving to kQueued. Else the state stays, for the caller to finish: ResourceExhausted where
  // the queue is full, Unavailable once refusing or closed, DeadlineExceeded or Cancelled where it
  // is too late.
  absl::Status Enqueue(RequestPtr request);

  // Blocks until `claim` accepts the first request of some queue, and returns it in kExecuting;
  // null once `quit` is set or the scheduler closed. `claim` is called under the lock: it leases
  // what the request needs or returns false, and must not call this object.
  RequestPtr Take(const std::atomic<bool>& quit,
                  absl::FunctionRef<bool(const RequestPtr& request)> claim);

  // Something that claims depend on has come free, or a `quit` was set.
  void Wake();

  // Ends `request` at once if it is queued; otherwise whoever is in charge sees it.
  void Cancel(const RequestPtr& request);

  // Ends queued requests whose deadline has passed.
  void ExpireOverdue();

  // Lets no more in and ends what is queued with `status`, which later callers get, too.
  void Close(const absl::Status& status);

  size_t queued_count(const ServedProgram& program) const;
  // Age of the longest queued request, zero where none is.
  absl::Duration oldest_age() const;

 private:
  struct Queue {
    const ServedProgram* program;
    std::deque<RequestPtr> requests;
  };

  Queue* FindQueue(const ServedProgram& program) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes out what is dead, and returns when the next one will be.
  absl::Time RemoveOverdue(std::vector<RequestPtr>& removed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  RequestPtr TryTake(absl::FunctionRef<bool(const RequestPtr&)> claim)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int queue_capacity_;
  const base::Clock& clock_;
  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  std::vector<Queue> queues_ ABSL_GUARDED_BY(mu_);
  // The queue that is looked at first.
  size_t turn_ ABSL_GUARDED_BY(mu_) = 0;
  // Not OK once closed.
  absl::Status closed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::engine
