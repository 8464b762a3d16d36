#include "server/engine/scheduler.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/failure_reason.h"

namespace cipherd::engine {

void Scheduler::AddProgram(const ServedProgram& program) {
  absl::MutexLock lock(&mu_);
  queues_.push_back({&program, {}});
}

absl::Status Scheduler::Enqueue(RequestPtr request) {
  if (absl::Status alive = request->CheckAlive(); !alive.ok()) return alive;
  absl::MutexLock lock(&mu_);
  if (!closed_.ok()) return closed_;
  Queue* queue = FindQueue(request->program());
  if (queue->requests.size() >= static_cast<size_t>(queue_capacity_)) {
    return WithReason(absl::ResourceExhaustedError(
                          absl::StrCat("program '", request->program().info().name,
                                       "': the queue of ", queue_capacity_, " requests is full")),
                      FailureReason::kOverloaded);
  }
  request->set_queued_at(clock_.Now());
  if (!request->Advance(RequestState::kReceiving, RequestState::kQueued)) {
    return absl::FailedPreconditionError("a request is submitted once");
  }
  queue->requests.push_back(std::move(request));
  changed_.SignalAll();
  return absl::OkStatus();
}

RequestPtr Scheduler::Take(const std::atomic<bool>& quit,
                           absl::FunctionRef<bool(const RequestPtr&)> claim) {
  while (true) {
    std::vector<RequestPtr> overdue;
    {
      absl::MutexLock lock(&mu_);
      while (!quit.load() && closed_.ok()) {
        const absl::Time next_deadline = RemoveOverdue(overdue);
        if (!overdue.empty()) break;
        if (RequestPtr request = TryTake(claim)) return request;
        // The clock may be a test's, so that only the distance means anything.
        changed_.WaitWithTimeout(&mu_, next_deadline - clock_.Now());
      }
      if (overdue.empty()) return nullptr;
    }
    for (const RequestPtr& request : overdue) {
      request->Finish(RequestState::kQueued, request->CheckAlive());
    }
  }
}

void Scheduler::Wake() {
  absl::MutexLock lock(&mu_);
  changed_.SignalAll();
}

void Scheduler::Cancel(const RequestPtr& request) {
  request->RequestCancel();
  {
    absl::MutexLock lock(&mu_);
    if (request->state() != RequestState::kQueued) return;
    std::deque<RequestPtr>& requests = FindQueue(request->program())->requests;
    const auto it = std::find(requests.begin(), requests.end(), request);
    // Whoever took it out already finishes it.
    if (it == requests.end()) return;
    requests.erase(it);
  }
  request->Finish(RequestState::kQueued, request->CheckAlive());
}

void Scheduler::ExpireOverdue() {
  std::vector<RequestPtr> overdue;
  {
    absl::MutexLock lock(&mu_);
    RemoveOverdue(overdue);
  }
  for (const RequestPtr& request : overdue) {
    request->Finish(RequestState::kQueued, request->CheckAlive());
  }
}

void Scheduler::Close(const absl::Status& status) {
  std::vector<RequestPtr> ended;
  {
    absl::MutexLock lock(&mu_);
    if (closed_.ok()) closed_ = status;
    for (Queue& queue : queues_) {
      std::move(queue.requests.begin(), queue.requests.end(), std::back_inserter(ended));
      queue.requests.clear();
    }
    changed_.SignalAll();
  }
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
  for (const Queue& queue : queues_) {
    if (!queue.requests.empty()) oldest = std::min(oldest, queue.requests.front()->queued_at());
  }
  return oldest == absl::InfiniteFuture() ? absl::ZeroDuration() : clock_.Now() - oldest;
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
    std::erase_if(queue.requests, [&](const RequestPtr& request) {
      if (request->CheckAlive().ok()) {
        next = std::min(next, request->head().deadline);
        return false;
      }
      removed.push_back(request);
      return true;
    });
  }
  return next;
}

RequestPtr Scheduler::TryTake(absl::FunctionRef<bool(const RequestPtr&)> claim) {
  for (size_t i = 0; i < queues_.size(); ++i) {
    const size_t index = (turn_ + i) % queues_.size();
    std::deque<RequestPtr>& requests = queues_[index].requests;
    if (requests.empty() || !claim(requests.front())) continue;
    RequestPtr request = std::move(requests.front());
    requests.pop_front();
    // Every transition from kQueued is made for requests in a queue, under the lock.
    request->Advance(RequestState::kQueued, RequestState::kExecuting);
    turn_ = index + 1;
    return request;
  }
  return nullptr;
}

}  // namespace cipherd::engine
