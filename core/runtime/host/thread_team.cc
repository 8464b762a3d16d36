#include "core/runtime/host/thread_team.h"

#include <algorithm>

#include "core/base/processor_count.h"

namespace cipherd::runtime::host {

bool ThreadTeam::Loop::VisitNext() {
  const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
  if (i >= count) return false;
  body(i);
  return true;
}

ThreadTeam::ThreadTeam(int worker_limit) : worker_limit_(std::max(1, worker_limit)) {
  for (int i = 1; i < worker_limit_; ++i) members_.emplace_back([this] { RunMember(); });
}

ThreadTeam::~ThreadTeam() {
  {
    absl::MutexLock lock(&mu_);
    quits_ = true;
  }
  for (std::thread& member : members_) member.join();
}

ThreadTeam& ThreadTeam::OfProcess() {
  static auto* const team = new ThreadTeam(base::ProcessorCount());
  return *team;
}

void ThreadTeam::ForEach(int64_t count, absl::FunctionRef<void(int64_t)> body) {
  if (count <= 1 || members_.empty()) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  Loop loop(count, body);
  std::list<Loop*>::iterator position;
  {
    absl::MutexLock lock(&mu_);
    ++working_;
    position = loops_.insert(loops_.end(), &loop);
  }
  while (loop.VisitNext()) {
  }
  absl::MutexLock lock(&mu_);
  --working_;
  loops_.erase(position);
  mu_.Await(absl::Condition(
      +[](Loop* mine) { return mine->members == 0; }, &loop));
}

ThreadTeam::Loop* ThreadTeam::FindWork() {
  if (working_ >= worker_limit_) return nullptr;
  for (Loop* loop : loops_) {
    if (!loop->IsTaken()) return loop;
  }
  return nullptr;
}

void ThreadTeam::RunMember() {
  absl::MutexLock lock(&mu_);
  while (true) {
    mu_.Await(absl::Condition(this, &ThreadTeam::FindsWorkOrQuits));
    if (quits_) return;
    // Looking for one again might find none: the last index may be taken at any time, without the
    // lock.
    Loop* const loop = found_;
    ++loop->members;
    ++working_;
    mu_.Unlock();
    while (loop->VisitNext() && working_.load(std::memory_order_relaxed) <= worker_limit_) {
    }
    mu_.Lock();
    --working_;
    --loop->members;
  }
}

}  // namespace cipherd::runtime::host
