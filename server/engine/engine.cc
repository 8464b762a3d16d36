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
  Devices devices;
  devices.push_back(std::move(device));
  return Create(std::move(devices), options, clock);
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(Devices devices,
                                                       const EngineOptions& options,
                                                       const base::Clock& clock) {
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  if (devices.empty()) return absl::InvalidArgumentError("engine: expected at least one device");
  std::unique_ptr<Engine> engine(new Engine(std::move(devices), options, clock));
  CIPHERD_RETURN_IF_ERROR(engine->OpenKeyStore());
  CIPHERD_RETURN_IF_ERROR(engine->CreateWorkers());
  return engine;
}

Engine::Engine(Devices devices, const EngineOptions& options, const base::Clock& clock)
    : options_(options),
      clock_(clock),
      devices_(std::move(devices)),
      quotas_(options.quotas, clock) {
  scheduler_ = std::make_unique<Scheduler>(clock);
  for (const std::unique_ptr<runtime::Device>& device : devices_) {
    key_residencies_.push_back(std::make_unique<KeyResidency>(
        *device, options.keys.device_budget_bytes, [this] { scheduler_->Wake(); }));
  }
  if (devices_.size() > 1) {
    loads_ =
        std::make_unique<DeviceLoads>(key_residencies_, options.keys.load_bytes_per_second, clock);
  }
}

absl::Status Engine::CreateWorkers() {
  for (size_t device = 0; device < devices_.size(); ++device) {
    for (int i = 0; i < options_.workers; ++i) {
      CIPHERD_ASSIGN_OR_RETURN(
          std::unique_ptr<Worker> worker,
          Worker::Create(absl::StrCat("worker ", workers_.size()), WorkerEnvironment(device)));
      if (loads_ != nullptr) loads_->AddWorker(device, *worker);
      workers_.push_back(std::move(worker));
    }
  }
  return absl::OkStatus();
}

Worker::Environment Engine::WorkerEnvironment(size_t device) {
  const bool is_cuda = devices_[device]->id().kind == runtime::DeviceId::Kind::kCuda;
  return {.device = *devices_[device],
          .scheduler = *scheduler_,
          .keys = *key_residencies_[device],
          .loads = loads_.get(),
          .device_index = device,
          .clock = clock_,
          .build_pool = [this, device](const ServedProgram& served)
              -> absl::StatusOr<std::unique_ptr<ProgramPool>> {
            const std::shared_ptr<const ProgramBinding> binding = served.binding(device);
            if (binding == nullptr) return absl::FailedPreconditionError("the program is unloaded");
            return BuildPool(device, served, *binding);
          },
          .on_fault = [this](const absl::Status& cause) { OnWorkerFault(cause); },
          .on_rebuild = [this](const absl::Status& rebuilt) { OnWorkerRebuild(rebuilt); },
          .completion = options_.completion.value_or(is_cuda ? CompletionMode::kPolled
                                                             : CompletionMode::kNotified),
          .spin = options_.WorkerSpin(static_cast<int>(devices_.size())),
          .rebuild_pause = options_.rebuild_pause,
          .records_timelines = records_timelines_};
}

absl::Status Engine::OpenKeyStore() {
  constexpr absl::Duration kSweepInterval = absl::Minutes(1);
  // For so long a set may serve here that its tenant has dropped at another daemon.
  constexpr absl::Duration kSharedSweepInterval = absl::Seconds(10);
  const KeyOptions& keys = options_.keys;
  CIPHERD_ASSIGN_OR_RETURN(
      key_store_,
      KeyStore::Open(
          *devices_.front(),
          {.budget_bytes = keys.host_budget_bytes,
           .max_set_bytes = keys.max_set_bytes(),
           .tenant_budget_bytes = keys.tenant_budget_bytes,
           .directory = keys.directory,
           .is_directory_shared = keys.is_directory_shared,
           .file_budget_bytes = keys.file_budget_bytes,
           .time_to_live = keys.time_to_live,
           .sweep_interval = keys.is_directory_shared ? kSharedSweepInterval : kSweepInterval},
          [this](const KeySetInfo& set) {
            for (const auto& residency : key_residencies_) residency->Forget(set);
            // A device may be the one for what another has left to it, or no more.
            if (loads_ != nullptr) scheduler_->Wake();
          },
          clock_));
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
  return std::ranges::any_of(workers_, [this](const std::unique_ptr<Worker>& worker) {
    return worker->is_healthy() && DeviceHealth(worker->device_index()).ok();
  });
}

absl::Status Engine::DeviceHealth() const {
  absl::Status first_failure;
  for (const std::unique_ptr<runtime::Device>& device : devices_) {
    const absl::Status health = device->health();
    if (health.ok()) return health;
    first_failure.Update(health);
  }
  return first_failure;
}

void Engine::EndWorkersOfFailedDevices() {
  for (const std::unique_ptr<Worker>& worker : workers_) worker->EndIfDeviceFailed();
}

void Engine::OnWorkerFault(const absl::Status& cause) {
  EndWorkersOfFailedDevices();
  UpdateReadiness();
  // What is queued waits for a device that serves, or will again.
  if (DeviceHealth().ok()) return;
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
