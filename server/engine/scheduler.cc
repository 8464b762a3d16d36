#include "server/engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "server/engine/failure_reason.h"
#include "server/engine/served_program.h"
#include "server/engine/spin.h"

namespace cipherd::engine {
namespace {

// At most so long a worker spins that could not start what is queued.
constexpr absl::Duration kLongestBusySpin = absl::Microseconds(200);

void FinishAll(const std::vector<RequestPtr>& requests) {
  for (const RequestPtr& request : requests) {
    request->Finish(RequestState::kQueued, request->CheckAlive());
  }
}

}  // namespace

void Scheduler::AddProgram(const ServedProgram& program, int capacity) {
  absl::MutexLock lock(&mu_);
  queues_.push_back({&program, static_cast<size_t>(capacity), {}, absl::InfiniteFuture()});
}

void Scheduler::RemoveProgram(const ServedProgram& program) {
  absl::MutexLock lock(&mu_);
  queues_.remove_if([&](const Queue& queue) { return queue.program == &program; });
}

absl::Status Scheduler::Enqueue(RequestPtr request) {
  if (absl::Status alive = request->CheckAlive(); !alive.ok()) return alive;
  CIPHERD_RETURN_IF_ERROR(Push(std::move(request)));
  TellSpinners();
  return absl::OkStatus();
}

absl::Status Scheduler::Push(RequestPtr request) {
  absl::MutexLock lock(&mu_);
  if (!closed_.ok()) return closed_;
  Queue* queue = FindQueue(request->program());
  if (queue == nullptr) {
    return absl::InternalError("the program of an admitted request is not scheduled");
  }
  if (queue->requests.size() >= queue->capacity) {
    return WithReason(absl::ResourceExhaustedError(
                          absl::StrCat("program '", request->program().info().name,
                                       "': the queue of ", queue->capacity, " requests is full")),
                      FailureReason::kOverloaded);
  }
  request->set_queued_at(clock_.Now());
  if (!request->Advance(RequestState::kReceiving, RequestState::kQueued)) {
    return absl::FailedPreconditionError("a request is submitted once");
  }
  queue->requests.Push(std::move(request));
  SignalChange();
  return absl::OkStatus();
}

std::vector<RequestPtr> Scheduler::Take(const std::atomic<bool>& quit, Claimant& claimant,
                                        absl::Duration spin) {
  bool has_begun = false;
  while (true) {
    std::vector<RequestPtr> overdue;
    std::vector<RequestPtr> batch;
    bool tells = false;
    {
      absl::MutexLock lock(&mu_);
      if (!std::exchange(has_begun, true)) BeginTake(claimant);
      while (!quit.load() && closed_.ok()) {
        absl::Time next_look = RemoveOverdue(overdue);
        if (!overdue.empty()) break;
        batch = TryTake(claimant, next_look);
        if (!batch.empty()) break;
        // The clock may be a test's, so that only the distance means anything.
        AwaitChange(claimant, spin, next_look - clock_.Now());
      }
      if (overdue.empty()) tells = EndTake(claimant);
    }
    if (tells) TellSpinners();
    if (overdue.empty()) return batch;
    FinishAll(overdue);
  }
}

void Scheduler::BeginTake(Claimant& claimant) {
  ++taking_count_;
  claimant.BeginTake();
}

bool Scheduler::EndTake(Claimant& claimant) {
  --taking_count_;
  if (!claimant.EndTake() || !HasQueued()) return false;
  SignalChange();
  return true;
}

void Scheduler::Wake() {
  {
    absl::MutexLock lock(&mu_);
    SignalChange();
  }
  TellSpinners();
}

void Scheduler::Cancel(const RequestPtr& request) {
  request->RequestCancel();
  {
    absl::MutexLock lock(&mu_);
    if (request->state() != RequestState::kQueued) return;
    Queue* const queue = FindQueue(request->program());
    // Whoever took it out already finishes it.
    if (queue == nullptr || !queue->requests.Remove(request)) return;
  }
  request->Finish(RequestState::kQueued, request->CheckAlive());
}

void Scheduler::ExpireOverdue() {
  std::vector<RequestPtr> overdue;
  {
    absl::MutexLock lock(&mu_);
    RemoveOverdue(overdue);
  }
  FinishAll(overdue);
}

void Scheduler::EndQueued(const absl::Status& status) {
  std::vector<RequestPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    RemoveAll(ended);
  }
  for (const RequestPtr& request : ended) request->Finish(RequestState::kQueued, status);
}

void Scheduler::Close(const absl::Status& status) {
  std::vector<RequestPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    if (closed_.ok()) closed_ = status;
    RemoveAll(ended);
    SignalChange();
  }
  TellSpinners();
  for (const RequestPtr& request : ended) request->Finish(RequestState::kQueued, status);
}

size_t Scheduler::queued_count(const ServedProgram& program) const {
  absl::MutexLock lock(&mu_);
  for (const Queue& queue : queues_) {
    if (queue.program == &program) return queue.requests.size();
  }
  return 0;
}

absl::Duration Scheduler::oldest_age() const {
  absl::MutexLock lock(&mu_);
  absl::Time oldest = absl::InfiniteFuture();
  for (const Queue& queue : queues_) oldest = std::min(oldest, queue.requests.oldest());
  return oldest == absl::InfiniteFuture() ? absl::ZeroDuration() : clock_.Now() - oldest;
}

int Scheduler::taking_count() const {
  absl::MutexLock lock(&mu_);
  return taking_count_;
}

bool Scheduler::HasQueued() const {
  return std::ranges::any_of(queues_, [](const Queue& queue) { return !queue.requests.empty(); });
}

Scheduler::Queue* Scheduler::FindQueue(const ServedProgram& program) {
  for (Queue& queue : queues_) {
    if (queue.program == &program) return &queue;
  }
  return nullptr;
}

absl::Time Scheduler::RemoveOverdue(std::vector<RequestPtr>& removed) {
  absl::Time next = absl::InfiniteFuture();
  for (Queue& queue : queues_) {
    queue.requests.RemoveIf(
        [&](const RequestPtr& request) {
          if (!request->CheckAlive().ok()) return true;
          next = std::min(next, request->head().deadline);
          return false;
        },
        removed);
  }
  return next;
}

std::vector<Scheduler::Queue*> Scheduler::QueuesInTurn() {
  std::vector<Queue*> order;
  order.reserve(queues_.size());
  for (Queue& queue : queues_) {
    if (!queue.requests.empty()) order.push_back(&queue);
  }
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const Queue* queue) { return queue->program->settings().priority; });
  return order;
}

FairQueue::Share Scheduler::ShareOf(Queue& queue, Claimant& claimant, absl::Time& next_look) {
  if (!claimant.BeginLook(*queue.program)) {
    const size_t count = queue.requests.size();
    const bool is_full = count >= static_cast<size_t>(queue.program->settings().largest_batch());
    // Tenants are looked through only where something may be held.
    return {.count = count, .oldest = is_full ? absl::InfinitePast() : queue.requests.oldest()};
  }
  const FairQueue::Share share =
      queue.requests.ShareOf([&](const RequestPtr& request, size_t waiting) {
        return claimant.RunsHere(request, waiting);
      });
  next_look = std::min(next_look, claimant.TakeNextLook());
  return share;
}

std::vector<RequestPtr> Scheduler::TryTake(Claimant& claimant, absl::Time& next_look) {
  for (Queue* queue : QueuesInTurn()) {
    const ServingSettings& settings = queue->program->settings();
    const int queued = static_cast<int>(queue->requests.size());
    int wanted = claimant.BatchSize(*queue->program, queued);
    if (wanted == 0) continue;
    const FairQueue::Share share = ShareOf(*queue, claimant, next_look);
    const int waiting = static_cast<int>(share.count);
    if (waiting == 0) continue;
    if (waiting < queued) wanted = claimant.BatchSize(*queue->program, waiting);
    if (wanted == 0) continue;
    const absl::Time held_until = waiting < settings.largest_batch()
                                      ? share.oldest + settings.max_batch_delay
                                      : absl::InfinitePast();
    if (const absl::Time now = clock_.Now(); now < held_until) {
      queue->held_since = std::min(queue->held_since, now);
      next_look = std::min(next_look, held_until);
      continue;
    }
    std::vector<RequestPtr> batch = TakeFrom(*queue, wanted, claimant);
    next_look = std::min(next_look, claimant.TakeNextLook());
    if (batch.empty()) continue;
    // Its next turn comes after those of the others.
    const auto served = std::ranges::find(queues_, queue->program, &Queue::program);
    queues_.splice(queues_.end(), queues_, served);
    return batch;
  }
  return {};
}

std::vector<RequestPtr> Scheduler::TakeFrom(Queue& queue, int wanted, Claimant& claimant) {
  std::vector<RequestPtr> batch = queue.requests.Pop(
      wanted,
      [&](const RequestPtr& request, size_t waiting) {
        return claimant.RunsHere(request, waiting);
      },
      [&](const RequestPtr& request) { return claimant.Claim(request); });
  const int claimed = static_cast<int>(batch.size());
  const int size = claimed == wanted ? wanted : claimant.BatchSize(*queue.program, claimed);
  if (size < claimed) {
    claimant.Unclaim(claimed - size);
    queue.requests.PutBack({batch.begin() + size, batch.end()});
    batch.resize(size);
  }
  const absl::Time now = clock_.Now();
  const absl::Time held_since = std::min(queue.held_since, now);
  if (!batch.empty()) queue.held_since = absl::InfiniteFuture();
  for (const RequestPtr& request : batch) {
    // Every transition from kQueued is made for requests in a queue, under the lock.
    request->Advance(RequestState::kQueued, RequestState::kExecuting);
    const absl::Duration held = now - std::max(held_since, request->queued_at());
    request->times().batch_wait_seconds = absl::ToDoubleSeconds(held);
    request->times().queue_seconds = absl::ToDoubleSeconds(now - request->queued_at() - held);
  }
  return batch;
}

void Scheduler::RemoveAll(std::vector<RequestPtr>& removed) {
  for (Queue& queue : queues_) {
    queue.requests.RemoveIf([](const RequestPtr&) { return true; }, removed);
  }
}

void Scheduler::SignalChange() {
  ++change_count_;
  changed_.SignalAll();
}

void Scheduler::TellSpinners() { told_count_.fetch_add(1, std::memory_order_release); }

void Scheduler::AwaitChange(Claimant& claimant, absl::Duration spin, absl::Duration timeout) {
  if (spin > absl::ZeroDuration()) {
    const uint64_t seen = change_count_;
    const absl::Duration longest =
        std::min(HasQueued() ? std::min(spin, kLongestBusySpin) : spin, timeout);
    // Once more where it is told late of what it has seen before.
    for (bool is_told = true; is_told;) {
      const uint64_t told = told_count_.load(std::memory_order_relaxed);
      mu_.Unlock();
      claimant.PrepareToTake();
      is_told =
          SpinUntil([&] { return told_count_.load(std::memory_order_acquire) != told; }, longest);
      mu_.Lock();
      if (change_count_ != seen) return;
    }
    timeout -= longest;
  }
  changed_.WaitWithTimeout(&mu_, timeout);
}

}  // namespace cipherd::engine
