// Which requests run next: one bounded queue a program, drained in batches by the workers.
//
//   CIPHERD_RETURN_IF_ERROR(scheduler.Enqueue(request));                  // any thread
//   while (true) {                                                        // a worker's device
//   thread
//     std::vector<RequestPtr> batch = scheduler.Take(quit, claimant);
//     if (batch.empty()) break;
//   }
//
// Workers pull: whichever can start a batch first takes it, of those requests that are its device's
// (placement.h) where there are several. Programs of a higher priority go first, those of one
// priority take turns; inside a program tenants take turns (fair_queue.h). A batch is the largest
// captured size that these requests fill; while they do not fill the program's largest one, the
// oldest of them may be held for the program's max_batch_delay, no longer.
//
// A request whose deadline passes in the queue is finished by whoever looks at the queue next, at
// the latest by a waiting worker at that moment. Thread-safe; Take blocks, nothing else does.
// Continuations of requests that end here run without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "server/engine/fair_queue.h"
#include "server/engine/request.h"

namespace cipherd::engine {

class Scheduler {
 public:
  // What a worker can start. Called under the scheduler's lock, except where it says otherwise:
  // must not call the scheduler, nor give up anything that does.
  class Claimant {
   public:
    virtual ~Claimant() = default;
    // The largest size, at most `count`, of a batch of `program` that could start now; 0 for none.
    virtual int BatchSize(const ServedProgram& program, int count) = 0;
    // Leases what `request` needs beside an instance; false where that must wait.
    virtual bool Claim(const RequestPtr& request) = 0;
    // Whether there are other devices that `program` runs on: all who take say the same, always.
    // Then RunsHere will be asked of its requests, under the lock as it is held now.
    virtual bool BeginLook(const ServedProgram& program) { return false; }
    // Whether `request`, whose tenant has `waiting` of the program queued, is this one's to claim;
    // false where another device is to run it.
    virtual bool RunsHere(const RequestPtr& request, size_t waiting) { return true; }
    // When what it has refused by RunsHere since it was last asked may be this one's though nothing
    // happens.
    virtual absl::Time TakeNextLook() { return absl::InfiniteFuture(); }
    // Take has begun, and is about to return with what was claimed since. The latter says whether
    // others that take are to look again at what is left.
    virtual void BeginTake() {}
    virtual bool EndTake() { return false; }
    // The latest `count` claims are not needed after all.
    virtual void Unclaim(int count) = 0;
    // The thread is about to spin for a request: time to be quick afterwards. Without the lock.
    virtual void PrepareToTake() {}
  };

  explicit Scheduler(const base::Clock& clock) : clock_(clock) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // At most `capacity` requests of `program` wait, those included that an idle worker has not
  // picked up yet.
  void AddProgram(const ServedProgram& program, int capacity);
  // Forgets a program of which nothing is queued and nothing will be.
  void RemoveProgram(const ServedProgram& program);

  // kReceiving to kQueued. Else the state stays, for the caller to finish: ResourceExhausted where
  // the queue is full, Unavailable once refusing or closed, DeadlineExceeded or Cancelled where it
  // is too late.
  absl::Status Enqueue(RequestPtr request);

  // Blocks until `claimant` can start a batch, and returns its requests in kExecuting, in the order
  // in which they were claimed; none once `quit` is set or the scheduler closed. Looks for changes
  // without sleeping for up to `spin` first; for less where requests wait, since what they wait for
  // wakes it.
  std::vector<RequestPtr> Take(const std::atomic<bool>& quit, Claimant& claimant,
                               absl::Duration spin = absl::ZeroDuration());

  // Something that claims depend on has come free, or a `quit` was set.
  void Wake();

  // Ends `request` at once if it is queued; otherwise whoever is in charge sees it.
  void Cancel(const RequestPtr& request);

  // Ends queued requests whose deadline has passed.
  void ExpireOverdue();

  // Ends what is queued with `status`; later requests are let in.
  void EndQueued(const absl::Status& status);
  // Lets no more in and ends what is queued with `status`, which later callers get, too.
  void Close(const absl::Status& status);

  size_t queued_count(const ServedProgram& program) const;
  // Age of the longest queued request, zero where none is.
  absl::Duration oldest_age() const;
  // Workers that are in Take.
  int taking_count() const;

 private:
  struct Queue {
    const ServedProgram* program;
    size_t capacity;
    FairQueue requests;
    // Since when a batch has been waited for beside an idle instance; InfiniteFuture where none is.
    absl::Time held_since;
  };

  void BeginTake(Claimant& claimant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends `claimant`'s Take: true where spinners are to be told of it.
  bool EndTake(Claimant& claimant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasQueued() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Queue* FindQueue(const ServedProgram& program) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes out what is dead, and returns when the next one will be.
  absl::Time RemoveOverdue(std::vector<RequestPtr>& removed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What of the queue is `claimant`'s device's; `next_look` as below.
  FairQueue::Share ShareOf(Queue& queue, Claimant& claimant, absl::Time& next_look)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // In the order in which programs are looked at.
  std::vector<Queue*> QueuesInTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Nothing where no batch can start; `next_look` moves to when one may though nothing happens, if
  // that is sooner.
  std::vector<RequestPtr> TryTake(Claimant& claimant, absl::Time& next_look)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Up to `wanted`.
  std::vector<RequestPtr> TakeFrom(Queue& queue, int wanted, Claimant& claimant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RemoveAll(std::vector<RequestPtr>& removed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Push(RequestPtr request) ABSL_LOCKS_EXCLUDED(mu_);
  void SignalChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // After a change, without the lock: who looks without it would run into it otherwise, and sleep.
  void TellSpinners() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for a change, first without mu_ for up to `spin`.
  void AwaitChange(Claimant& claimant, absl::Duration spin, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const base::Clock& clock_;
  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  // Grows with every change.
  uint64_t change_count_ ABSL_GUARDED_BY(mu_) = 0;
  // Grows after every change, for those who look without the lock.
  std::atomic<uint64_t> told_count_ = 0;
  std::list<Queue> queues_ ABSL_GUARDED_BY(mu_);
  int taking_count_ ABSL_GUARDED_BY(mu_) = 0;
  // Not OK once closed.
  absl::Status closed_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::engine
