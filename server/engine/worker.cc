#include "server/engine/worker.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/engine/failure_reason.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {

// What the device thread has leased for its next batch.
class Worker::BatchClaim final : public Scheduler::Claimant {
 public:
  explicit BatchClaim(Worker& worker) : worker_(worker) {}

  int BatchSize(const ServedProgram& program, int count) override {
    const std::shared_ptr<ProgramPool> pool = worker_.FindPool(program);
    return pool == nullptr ? 0 : pool->IdleBatchSize(count);
  }
  bool BeginLook(const ServedProgram& program) override {
    const DeviceLoads* const loads = worker_.environment_.loads;
    if (loads != nullptr) view_.emplace(loads->Look(program));
    return loads != nullptr;
  }
  bool RunsHere(const RequestPtr& request, size_t waiting) override {
    if (!view_.has_value()) return true;
    const DeviceLoads::Decision decision =
        view_->Decide(worker_.environment_.device_index, *request, waiting, LoadCost());
    next_look_ = std::min(next_look_, decision.look_again);
    load_cost_ = decision.load_cost;
    return decision.is_here;
  }
  absl::Time TakeNextLook() override { return std::exchange(next_look_, absl::InfiniteFuture()); }
  void BeginTake() override { worker_.is_taking_ = true; }
  // Still under the scheduler's lock, so that whoever looks next sees the batch.
  bool EndTake() override {
    worker_.is_taking_ = false;
    view_.reset();
    DeviceLoads* const loads = worker_.environment_.loads;
    if (loads == nullptr) return false;
    if (!claims_.empty()) {
      charge_ = loads->Begin(worker_.environment_.device_index, batch_time_ + LoadCost());
    }
    return true;
  }
  bool Claim(const RequestPtr& request) override {
    std::optional<KeyResidency::Pin> pin = worker_.environment_.keys.TryPin(request->keys());
    if (!pin.has_value()) return false;
    claims_.push_back({*std::move(pin), load_cost_});
    batch_time_ = request->program().batch_time();
    return true;
  }
  void Unclaim(int count) override {
    // Their release tells the scheduler, whose lock is held.
    std::move(claims_.end() - count, claims_.end(), std::back_inserter(surplus_));
    claims_.erase(claims_.end() - count, claims_.end());
  }

  // A driver that has just been spoken to answers sooner: the first call after a millisecond of
  // silence takes several times as long as the next one. What comes of it does not matter.
  // The same of what a claim will look at, which the completion thread has changed last.
  void PrepareToTake() override {
    worker_.streams_.transfer->Record(*worker_.prepared_).IgnoreError();
    worker_.LookAtPools();
  }

  // Only this thread leases from the pool, so that what was idle is idle still; and the pool stays
  // while requests of its program are under way.
  DeviceSubmission Submission(std::vector<RequestPtr> requests) {
    surplus_.clear();
    const std::shared_ptr<ProgramPool> pool = worker_.FindPool(requests.front()->program());
    std::vector<DeviceSubmission::Item> items;
    items.reserve(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      items.push_back({std::move(requests[i]), std::move(claims_[i].pin)});
    }
    claims_.clear();
    const int batch_size = static_cast<int>(items.size());
    return DeviceSubmission(std::move(items), *pool->TryLease(batch_size), std::move(charge_));
  }

 private:
  struct OneClaim {
    KeyResidency::Pin pin;
    // Of copying its keys.
    absl::Duration load_cost;
  };

  // Of what is claimed.
  absl::Duration LoadCost() const {
    absl::Duration cost;
    for (const OneClaim& claim : claims_) cost += claim.load_cost;
    return cost;
  }

  Worker& worker_;
  std::vector<OneClaim> claims_;
  std::vector<OneClaim> surplus_;
  // With several devices: of the queue that is looked at.
  std::optional<DeviceLoads::View> view_;
  absl::Time next_look_ = absl::InfiniteFuture();
  // Of the request that RunsHere has accepted last.
  absl::Duration load_cost_;
  // Of the batch that has been claimed.
  absl::Duration batch_time_;
  DeviceLoads::Charge charge_;
};

absl::StatusOr<std::unique_ptr<Worker>> Worker::Create(std::string name, Environment environment) {
  std::unique_ptr<Worker> worker(new Worker(std::move(name), std::move(environment)));
  CIPHERD_RETURN_IF_ERROR(worker->StartStreams());
  worker->is_serving_.store(true);
  worker->device_thread_ = std::thread([w = worker.get()] { w->RunDeviceThread(); });
  worker->completion_thread_ = std::thread([w = worker.get()] { w->RunCompletionThread(); });
  return worker;
}

Worker::Worker(std::string name, Environment environment)
    : name_(std::move(name)), environment_(std::move(environment)) {}

Worker::~Worker() {
  if (const absl::Status status = Stop(); !status.ok()) {
    spdlog::error("{}: {}", name_, std::string(status.message()));
  }
}

absl::Status Worker::StartStreams() {
  CIPHERD_ASSIGN_OR_RETURN(streams_, WorkerStreams::Create(environment_.device, name_));
  CIPHERD_ASSIGN_OR_RETURN(epoch_, environment_.device.CreateEvent());
  CIPHERD_RETURN_IF_ERROR(streams_.compute->Record(*epoch_));
  CIPHERD_ASSIGN_OR_RETURN(prepared_, environment_.device.CreateEvent());
  return streams_.compute->Synchronize();
}

void Worker::AddProgram(std::shared_ptr<const ServedProgram> program,
                        std::unique_ptr<ProgramPool> pool) {
  {
    absl::MutexLock lock(&mu_);
    pools_[std::move(program)] = std::move(pool);
  }
  environment_.scheduler.Wake();
}

absl::Status Worker::RemoveProgram(const ServedProgram& program) {
  std::shared_ptr<ProgramPool> pool;
  {
    absl::MutexLock lock(&mu_);
    const auto it = std::find_if(pools_.begin(), pools_.end(),
                                 [&](const auto& entry) { return entry.first.get() == &program; });
    if (it == pools_.end()) return absl::OkStatus();
    pool = std::move(it->second);
    pools_.erase(it);
  }
  return pool == nullptr ? absl::OkStatus() : pool->Close();
}

absl::Status Worker::Stop() {
  {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
    quit_.store(true);
    changed_.SignalAll();
  }
  environment_.scheduler.Wake();
  if (device_thread_.joinable()) device_thread_.join();
  if (completion_thread_.joinable()) completion_thread_.join();
  is_serving_.store(false);
  absl::MutexLock lock(&mu_);
  absl::Status status;
  for (auto& [program, pool] : pools_) {
    if (pool != nullptr) status.Update(pool->Close());
  }
  return status;
}

Worker::InstanceCounts Worker::instance_counts(const ServedProgram& program) const {
  const std::shared_ptr<ProgramPool> pool = FindPool(program);
  return pool == nullptr ? InstanceCounts{} : InstanceCounts{pool->size(), pool->leased_count()};
}

Worker::Readiness Worker::ReadinessFor(const ServedProgram& program) const {
  if (!is_healthy()) return {};
  // Another worker's thread asks: the pool is not to go with what it holds.
  absl::MutexLock lock(&mu_);
  const std::shared_ptr<ProgramPool>* const pool = PoolOf(program);
  if (pool == nullptr || *pool == nullptr) return {};
  return {.is_serving = true, .can_start = is_taking_ && (*pool)->IdleBatchSize(1) > 0};
}

const std::shared_ptr<ProgramPool>* Worker::PoolOf(const ServedProgram& program) const {
  for (const auto& [served, pool] : pools_) {
    if (served.get() == &program) return &pool;
  }
  return nullptr;
}

std::shared_ptr<ProgramPool> Worker::FindPool(const ServedProgram& program) const {
  absl::MutexLock lock(&mu_);
  const std::shared_ptr<ProgramPool>* const pool = PoolOf(program);
  return pool == nullptr ? nullptr : *pool;
}

void Worker::LookAtPools() const {
  absl::MutexLock lock(&mu_);
  for (const auto& [served, pool] : pools_) {
    if (pool != nullptr) pool->IdleBatchSize(1);
  }
}

void Worker::RunDeviceThread() {
  const bool is_polled = environment_.completion == CompletionMode::kPolled;
  const absl::Duration spin = is_polled ? environment_.spin : absl::ZeroDuration();
  while (AwaitServing()) {
    {
      BatchClaim claim(*this);
      while (true) {
        std::vector<RequestPtr> batch = environment_.scheduler.Take(quit_, claim, spin);
        if (batch.empty()) break;
        Submit(claim.Submission(std::move(batch)));
      }
    }
    absl::MutexLock lock(&mu_);
    is_submitting_ = false;
    changed_.SignalAll();
    // The scheduler has closed.
    if (fault_.ok()) break;
  }
  absl::MutexLock lock(&mu_);
  device_thread_ended_ = true;
  changed_.SignalAll();
}

bool Worker::AwaitServing() {
  absl::MutexLock lock(&mu_);
  while (!is_stopping_ && !is_serving_.load()) changed_.Wait(&mu_);
  is_submitting_ = !is_stopping_;
  return is_submitting_;
}

void Worker::Submit(DeviceSubmission submission) {
  Submissions::iterator it;
  {
    absl::MutexLock lock(&mu_);
    it = in_flight_.insert(in_flight_.end(), std::move(submission));
  }
  absl::Status status = it->LoadKeys(streams_, environment_.keys);
  EndRefused(it->TakeRefused());
  const bool is_polled = environment_.completion == CompletionMode::kPolled;
  if (status.ok() && it->has_items()) {
    status = is_polled ? it->Enqueue(streams_) : it->Enqueue(streams_, ListenerOf(it));
    // Once told of, the submission may be gone.
    if (status.ok() && !is_polled) return;
  }
  Submissions refused;
  {
    absl::MutexLock lock(&mu_);
    if (status.ok() && it->has_items()) {
      ++enqueued_count_;
      changed_.SignalAll();
      return;
    }
    if (!status.ok() && (it->may_be_under_way() || !environment_.device.health().ok())) {
      // It may be under way: the completion thread ends it when the streams are quiet.
      ReportFault(status);
      return;
    }
    refused.splice(refused.end(), in_flight_, it);
  }
  for (const RequestPtr& request : refused.front().Release()) {
    request->Finish(RequestState::kExecuting, status);
  }
}

DeviceSubmission::Listener Worker::ListenerOf(Submissions::iterator submission) {
  return {.on_early_output =
              [this, submission](size_t output) {
                absl::MutexLock lock(&mu_);
                early_outputs_.push_back({&*submission, output});
                changed_.SignalAll();
              },
          .on_done =
              [this, submission] {
                absl::MutexLock lock(&mu_);
                completed_.splice(completed_.end(), in_flight_, submission);
                changed_.SignalAll();
              }};
}

void Worker::EndRefused(std::vector<DeviceSubmission::Refusal> refused) {
  for (const DeviceSubmission::Refusal& refusal : refused) {
    refusal.request->Finish(RequestState::kExecuting,
                            WithReason(refusal.status, FailureReason::kOverloaded));
  }
}

void Worker::RunCompletionThread() {
  CompletionPoller poller;
  while (true) {
    EarlyOutputs early_outputs;
    Submissions completed;
    const absl::Status status = environment_.completion == CompletionMode::kPolled
                                    ? AwaitPolled(poller, completed)
                                    : AwaitNotified(early_outputs, completed);
    // Before what they are of: only this thread ends what is in flight.
    for (const auto& [submission, output] : early_outputs) submission->TellEarlyOutput(output);
    for (DeviceSubmission& submission : completed) Complete(submission);
    if (absl::IsCancelled(status)) return;
    if (status.ok()) continue;
    EndAfterFault(status);
    if (!Rebuild()) return;
  }
}

absl::Status Worker::AwaitNotified(EarlyOutputs& early_outputs, Submissions& completed) {
  absl::MutexLock lock(&mu_);
  while (completed_.empty() && early_outputs_.empty()) {
    if (!fault_.ok()) return fault_;
    if (device_thread_ended_ && in_flight_.empty()) return absl::CancelledError("stopped");
    const bool timed_out = changed_.WaitWithTimeout(&mu_, environment_.fault_poll_interval);
    // A stream that has failed runs nothing more, the word of completion included.
    if (!timed_out || in_flight_.empty()) continue;
    if (const absl::Status health = environment_.device.health(); !health.ok()) {
      ReportFault(health);
    }
  }
  early_outputs.swap(early_outputs_);
  completed.splice(completed.end(), completed_);
  return absl::OkStatus();
}

absl::Status Worker::AwaitPolled(CompletionPoller& poller, Submissions& completed) {
  DeviceSubmission* first = nullptr;
  bool is_lone = false;
  {
    absl::MutexLock lock(&mu_);
    while (enqueued_count_ == 0 && fault_.ok()) {
      if (device_thread_ended_ && in_flight_.empty()) return absl::CancelledError("stopped");
      changed_.Wait(&mu_);
    }
    if (!fault_.ok()) return fault_;
    // Only this thread takes out what is enqueued.
    first = &in_flight_.front();
    is_lone = in_flight_.size() == 1;
  }
  // The output stream completes submissions in their order. What is in flight when the worker stops
  // is waited for.
  const CompletionPoller::Listener listener = {
      // So that the device thread is awake when an instance and maybe a client come free.
      .on_near_end = [this] { environment_.scheduler.Wake(); },
      .on_completed = [first](size_t milestone) { first->OnMilestone(milestone); }};
  const absl::StatusOr<bool> done =
      poller.Await(first->milestones(), first->expected_wait(), has_faulted_, listener,
                   is_lone ? environment_.spin : absl::ZeroDuration());
  absl::MutexLock lock(&mu_);
  if (!done.ok()) ReportFault(done.status());
  if (!fault_.ok()) return fault_;
  --enqueued_count_;
  completed.splice(completed.end(), in_flight_, in_flight_.begin());
  return absl::OkStatus();
}

void Worker::Complete(DeviceSubmission& submission) {
  submission.set_seen_at(absl::Now());
  submission.RecordTimes();
  submission.CountRun();
  if (environment_.records_timelines.load()) submission.RecordTimeline(*epoch_);
  for (const RequestPtr& request : submission.Release()) {
    if (const absl::Status alive = request->CheckAlive(); !alive.ok()) {
      request->Finish(RequestState::kExecuting, alive);
      continue;
    }
    request->Advance(RequestState::kExecuting, RequestState::kReplying);
    request->ContinueWithResult();
  }
}

}  // namespace cipherd::engine
