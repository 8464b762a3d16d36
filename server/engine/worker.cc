#include "server/engine/worker.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "server/engine/failure_reason.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {

absl::StatusOr<std::unique_ptr<Worker>> Worker::Create(std::string name, Environment environment) {
  WorkerStreams streams;
  CIPHERD_ASSIGN_OR_RETURN(streams.transfer,
                           environment.device.CreateStream(absl::StrCat(name, " transfer")));
  CIPHERD_ASSIGN_OR_RETURN(streams.compute,
                           environment.device.CreateStream(absl::StrCat(name, " compute")));
  CIPHERD_ASSIGN_OR_RETURN(streams.output,
                           environment.device.CreateStream(absl::StrCat(name, " output")));
  std::unique_ptr<Worker> worker(
      new Worker(std::move(name), std::move(environment), std::move(streams)));
  worker->device_thread_ = std::thread([w = worker.get()] { w->RunDeviceThread(); });
  worker->completion_thread_ = std::thread([w = worker.get()] { w->RunCompletionThread(); });
  return worker;
}

Worker::Worker(std::string name, Environment environment, WorkerStreams streams)
    : name_(std::move(name)), environment_(std::move(environment)), streams_(std::move(streams)) {}

Worker::~Worker() {
  if (const absl::Status status = Stop(); !status.ok()) {
    spdlog::error("{}: {}", name_, std::string(status.message()));
  }
}

void Worker::AddProgram(const ServedProgram& program, std::unique_ptr<ProgramPool> pool) {
  {
    absl::MutexLock lock(&mu_);
    pools_[&program] = std::move(pool);
  }
  environment_.scheduler.Wake();
}

absl::Status Worker::Stop() {
  quit_.store(true);
  environment_.scheduler.Wake();
  if (device_thread_.joinable()) device_thread_.join();
  if (completion_thread_.joinable()) completion_thread_.join();
  absl::MutexLock lock(&mu_);
  absl::Status status;
  for (auto& [program, pool] : pools_) status.Update(pool->Close());
  return status;
}

Worker::InstanceCounts Worker::instance_counts(const ServedProgram& program) const {
  const ProgramPool* pool = FindPool(program);
  return pool == nullptr ? InstanceCounts{} : InstanceCounts{pool->size(), pool->leased_count()};
}

ProgramPool* Worker::FindPool(const ServedProgram& program) const {
  absl::MutexLock lock(&mu_);
  const auto it = pools_.find(&program);
  return it == pools_.end() ? nullptr : it->second.get();
}

void Worker::RunDeviceThread() {
  while (true) {
    ProgramPool* pool = nullptr;
    std::optional<KeyResidency::Pin> keys;
    const auto claim = [&](const RequestPtr& request) {
      pool = FindPool(request->program());
      if (pool == nullptr || pool->leased_count() == pool->size()) return false;
      keys = environment_.keys.TryPin(request->keys());
      return keys.has_value();
    };
    RequestPtr request = environment_.scheduler.Take(quit_, claim);
    if (request == nullptr) break;
    request->times().queue_seconds =
        absl::ToDoubleSeconds(environment_.clock.Now() - request->queued_at());
    // Only this thread leases from the pool, so that what was idle is idle still.
    Submit(DeviceSubmission(std::move(request), *pool->TryLease(), *std::move(keys)));
  }
  absl::MutexLock lock(&mu_);
  device_thread_ended_ = true;
  changed_.SignalAll();
}

void Worker::Submit(DeviceSubmission submission) {
  Submissions::iterator it;
  {
    absl::MutexLock lock(&mu_);
    it = in_flight_.insert(in_flight_.end(), std::move(submission));
  }
  // From the moment that the last piece is enqueued the submission may be gone.
  const absl::Status status = it->Enqueue(streams_, environment_.keys, [this, it] {
    absl::MutexLock lock(&mu_);
    completed_.splice(completed_.end(), in_flight_, it);
    changed_.SignalAll();
  });
  if (status.ok()) return;
  Submissions refused;
  {
    absl::MutexLock lock(&mu_);
    if (it->may_be_under_way() || !environment_.device.health().ok()) {
      // It may be under way: the completion thread ends it when the streams are quiet.
      ReportFault(status);
      return;
    }
    refused.splice(refused.end(), in_flight_, it);
  }
  refused.front().Release();
  refused.front().request()->Finish(
      RequestState::kExecuting,
      absl::IsResourceExhausted(status) ? WithReason(status, FailureReason::kOverloaded) : status);
}

void Worker::ReportFault(const absl::Status& cause) {
  if (fault_.ok()) fault_ = cause;
  is_faulted_.store(true);
  quit_.store(true);
  changed_.SignalAll();
}

void Worker::RunCompletionThread() {
  while (true) {
    Submissions completed;
    const absl::Status status = AwaitCompleted(completed);
    for (DeviceSubmission& submission : completed) Complete(submission);
    if (absl::IsCancelled(status)) return;
    if (!status.ok()) {
      EndAfterFault(status);
      return;
    }
  }
}

absl::Status Worker::AwaitCompleted(Submissions& completed) {
  absl::MutexLock lock(&mu_);
  while (completed_.empty()) {
    if (!fault_.ok()) return fault_;
    if (device_thread_ended_ && in_flight_.empty()) return absl::CancelledError("stopped");
    const bool timed_out = changed_.WaitWithTimeout(&mu_, environment_.fault_poll_interval);
    // A stream that has failed runs nothing more, the word of completion included.
    if (!timed_out || in_flight_.empty()) continue;
    if (const absl::Status health = environment_.device.health(); !health.ok()) {
      ReportFault(health);
    }
  }
  completed.splice(completed.end(), completed_);
  return absl::OkStatus();
}

void Worker::Complete(DeviceSubmission& submission) {
  const RequestPtr request = submission.request();
  submission.RecordTimes();
  submission.Release();
  if (const absl::Status alive = request->CheckAlive(); !alive.ok()) {
    request->Finish(RequestState::kExecuting, alive);
    return;
  }
  request->Advance(RequestState::kExecuting, RequestState::kReplying);
  request->ContinueWithResult();
}

void Worker::EndAfterFault(const absl::Status& cause) {
  spdlog::error("{} failed: {}", name_, std::string(cause.ToString()));
  environment_.scheduler.Wake();
  Submissions failed;
  {
    absl::MutexLock lock(&mu_);
    while (!device_thread_ended_) changed_.Wait(&mu_);
  }
  streams_.AwaitQuiet();
  {
    absl::MutexLock lock(&mu_);
    failed.splice(failed.end(), in_flight_);
    failed.splice(failed.end(), completed_);
  }
  const absl::Status unavailable =
      WithReason(absl::UnavailableError("the device failed while the request was running"),
                 FailureReason::kUnavailable);
  for (DeviceSubmission& submission : failed) {
    submission.Release();
    submission.request()->Finish(RequestState::kExecuting, unavailable);
  }
  environment_.on_fault(cause);
}

}  // namespace cipherd::engine
