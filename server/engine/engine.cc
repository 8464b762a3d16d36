#include "server/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "server/engine/failure_reason.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(std::unique_ptr<runtime::Device> device,
                                                       const EngineOptions& options,
                                                       const base::Clock& clock) {
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  std::unique_ptr<Engine> engine(new Engine(std::move(device), options, clock));
  CIPHERD_RETURN_IF_ERROR(engine->OpenKeyStore());
  const bool is_cuda = engine->device_->id().kind == runtime::DeviceId::Kind::kCuda;
  Engine* const e = engine.get();
  for (int i = 0; i < options.workers; ++i) {
    Worker::Environment environment{
        .device = *engine->device_,
        .scheduler = *engine->scheduler_,
        .keys = *engine->key_residency_,
        .clock = clock,
        .build_pool =
            [e](const ServedProgram& served) -> absl::StatusOr<std::unique_ptr<ProgramPool>> {
          const std::shared_ptr<const ProgramBinding> binding = served.binding();
          if (binding == nullptr) return absl::FailedPreconditionError("the program is unloaded");
          return e->BuildPool(served, *binding);
        },
        .on_fault = [e](const absl::Status& cause) { e->OnWorkerFault(cause); },
        .on_rebuild = [e](const absl::Status& rebuilt) { e->OnWorkerRebuild(rebuilt); },
        .completion = options.completion.value_or(is_cuda ? CompletionMode::kPolled
                                                          : CompletionMode::kNotified),
        .spin = options.WorkerSpin(),
        .rebuild_pause = options.rebuild_pause,
        .records_timelines = engine->records_timelines_};
    CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker,
                             Worker::Create(absl::StrCat("worker ", i), std::move(environment)));
    engine->workers_.push_back(std::move(worker));
  }
  return engine;
}

Engine::Engine(std::unique_ptr<runtime::Device> device, const EngineOptions& options,
               const base::Clock& clock)
    : options_(options), clock_(clock), device_(std::move(device)), quotas_(options.quotas, clock) {
  scheduler_ = std::make_unique<Scheduler>(clock);
  key_residency_ = std::make_unique<KeyResidency>(*device_, options.keys.device_budget_bytes,
                                                  [this] { scheduler_->Wake(); });
}

absl::Status Engine::OpenKeyStore() {
  constexpr absl::Duration kSweepInterval = absl::Minutes(1);
  // For so long a set may serve here that its tenant has dropped at another daemon.
  constexpr absl::Duration kSharedSweepInterval = absl::Seconds(10);
  const KeyOptions& keys = options_.keys;
  CIPHERD_ASSIGN_OR_RETURN(
      key_store_,
      KeyStore::Open(
          *device_,
          {.budget_bytes = keys.host_budget_bytes,
           .max_set_bytes = keys.max_set_bytes(),
           .tenant_budget_bytes = keys.tenant_budget_bytes,
           .directory = keys.directory,
           .is_directory_shared = keys.is_directory_shared,
           .file_budget_bytes = keys.file_budget_bytes,
           .time_to_live = keys.time_to_live,
           .sweep_interval = keys.is_directory_shared ? kSharedSweepInterval : kSweepInterval},
          [this](const KeySetInfo& set) { key_residency_->Forget(set); }, clock_));
  return absl::OkStatus();
}

Engine::~Engine() {
  if (const absl::Status status = Stop(); !status.ok()) {
    spdlog::error("engine: {}", std::string(status.message()));
  }
}

bool Engine::Drain(absl::Duration timeout) {
  {
    absl::MutexLock lock(&mu_);
    is_draining_ = true;
  }
  if (ledger_.AwaitIdle(timeout)) return true;
  scheduler_->Close(WithReason(absl::UnavailableError("the daemon is shutting down"),
                               FailureReason::kUnavailable));
  return ledger_.in_flight() == 0;
}

bool Engine::is_draining() const {
  absl::MutexLock lock(&mu_);
  return is_draining_;
}

absl::Status Engine::Stop() {
  Drain(absl::ZeroDuration());
  // Ends what waits for keys, and finishes writing sets.
  if (key_store_ != nullptr) key_store_->Stop();
  absl::Status status;
  for (const std::unique_ptr<Worker>& worker : workers_) status.Update(worker->Stop());
  for (const std::shared_ptr<ServedProgram>& program : programs()) {
    status.Update(program->trees().Close());
  }
  return status;
}

bool Engine::AnyWorkerServes() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const std::unique_ptr<Worker>& worker) { return worker->is_healthy(); });
}

void Engine::OnWorkerFault(const absl::Status& cause) {
  UpdateReadiness();
  // The workers share one device, whose failure is every worker's.
  if (device_->health().ok()) return;
  scheduler_->Close(
      WithReason(absl::UnavailableError("the device failed"), FailureReason::kUnavailable));
}

void Engine::OnWorkerRebuild(const absl::Status& rebuilt) {
  UpdateReadiness();
  if (rebuilt.ok() || AnyWorkerServes()) return;
  // Nobody knows how long it will take.
  scheduler_->EndQueued(
      WithReason(absl::UnavailableError("the device fails to serve"), FailureReason::kUnavailable));
}

}  // namespace cipherd::engine
