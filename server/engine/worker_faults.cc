// Worker: what becomes of it after a failure of its device or its streams.
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "server/engine/failure_reason.h"
#include "server/engine/worker.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {

void Worker::ReportFault(const absl::Status& cause) {
  if (fault_.ok()) {
    fault_ = cause;
    fault_count_.fetch_add(1);
  }
  has_faulted_.store(true);
  is_serving_.store(false);
  quit_.store(true);
  changed_.SignalAll();
}

void Worker::EndIfDeviceFailed() {
  const absl::Status health = environment_.device.health();
  if (health.ok()) return;
  absl::MutexLock lock(&mu_);
  if (fault_.ok()) ReportFault(health);
}

void Worker::EndAfterFault(const absl::Status& cause) {
  spdlog::error("{} failed: {}", name_, std::string(cause.ToString()));
  environment_.scheduler.Wake();
  // First, so that nothing more comes to a device that has failed for good while this waits.
  environment_.on_fault(cause);
  {
    absl::MutexLock lock(&mu_);
    while (is_submitting_) changed_.Wait(&mu_);
  }
  streams_.AwaitQuiet();
  Submissions failed;
  {
    absl::MutexLock lock(&mu_);
    failed.splice(failed.end(), in_flight_);
    failed.splice(failed.end(), completed_);
    early_outputs_.clear();
    enqueued_count_ = 0;
  }
  const absl::Status unavailable =
      WithReason(absl::UnavailableError("the device failed while the request was running"),
                 FailureReason::kUnavailable);
  for (DeviceSubmission& submission : failed) {
    for (const RequestPtr& request : submission.Release()) {
      request->Finish(RequestState::kExecuting, unavailable);
    }
  }
}

bool Worker::Rebuild() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (is_stopping_ || device_thread_ended_) return false;
    }
    if (const absl::Status health = environment_.device.health(); !health.ok()) {
      spdlog::error("{} stays out, since its device has failed for this process: {}", name_,
                    std::string(health.message()));
      return false;
    }
    const absl::Status rebuilt = TryRebuild();
    if (rebuilt.ok()) {
      absl::MutexLock lock(&mu_);
      fault_ = absl::OkStatus();
      has_faulted_.store(false);
      quit_.store(is_stopping_);
      is_serving_.store(!is_stopping_);
      changed_.SignalAll();
    }
    environment_.on_rebuild(rebuilt);
    if (rebuilt.ok()) {
      spdlog::info("{} serves again", name_);
      environment_.scheduler.Wake();
      return true;
    }
    spdlog::error("{} could not be rebuilt, next attempt in {}: {}", name_,
                  absl::FormatDuration(environment_.rebuild_pause),
                  std::string(rebuilt.ToString()));
    absl::MutexLock lock(&mu_);
    const absl::Time next_attempt = absl::Now() + environment_.rebuild_pause;
    while (!is_stopping_ && !changed_.WaitWithDeadline(&mu_, next_attempt)) continue;
  }
}

absl::Status Worker::TryRebuild() {
  std::vector<std::shared_ptr<const ServedProgram>> programs;
  {
    // Destroyed without the lock; what they hold is free for the new ones.
    std::vector<std::shared_ptr<ProgramPool>> old;
    absl::MutexLock lock(&mu_);
    for (auto& [program, pool] : pools_) {
      programs.push_back(program);
      old.push_back(std::exchange(pool, nullptr));
    }
  }
  CIPHERD_RETURN_IF_ERROR(StartStreams());
  for (const std::shared_ptr<const ServedProgram>& program : programs) {
    absl::StatusOr<std::unique_ptr<ProgramPool>> pool = environment_.build_pool(*program);
    absl::MutexLock lock(&mu_);
    const auto it = pools_.find(program);
    // Removed meanwhile.
    if (it == pools_.end()) continue;
    CIPHERD_RETURN_IF_ERROR(pool.status());
    it->second = *std::move(pool);
  }
  return absl::OkStatus();
}

}  // namespace cipherd::engine
