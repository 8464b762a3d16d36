#include "server/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "server/engine/failure_reason.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {
namespace {

// The ledger's label for requests of programs that are not here.
constexpr std::string_view kUnknownProgramLabel = "unknown";

// A program's name as a message or a log shows it: a peer's megabytes and control characters do not
// come back.
std::string Shown(std::string_view name) {
  constexpr size_t kMostShown = 64;
  if (name.size() > kMostShown) return absl::StrCat("(a name of ", name.size(), " bytes)");
  return absl::CEscape(absl::string_view(name.data(), name.size()));
}

absl::Status CheckAtLeast(std::string_view field, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("engine.", std::string(field), ": expected at least ", least, ", got ", value));
}

}  // namespace

absl::Status EngineOptions::Validate() const {
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("workers", workers, 1));
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("instances", instances, 1));
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("queue_capacity", queue_capacity, 1));
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("warmup", warmup, 0));
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("keys.host_budget_bytes", keys.host_budget_bytes, 1));
  return CheckAtLeast("keys.device_budget_bytes", keys.device_budget_bytes, 1);
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(std::unique_ptr<runtime::Device> device,
                                                       const EngineOptions& options,
                                                       const base::Clock& clock) {
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  std::unique_ptr<Engine> engine(new Engine(std::move(device), options, clock));
  for (int i = 0; i < options.workers; ++i) {
    CIPHERD_ASSIGN_OR_RETURN(
        std::unique_ptr<Worker> worker,
        Worker::Create(absl::StrCat("worker ", i),
                       {.device = *engine->device_,
                        .scheduler = *engine->scheduler_,
                        .keys = *engine->key_residency_,
                        .clock = clock,
                        .on_fault = [e = engine.get()](const absl::Status& cause) {
                          e->OnWorkerFault(cause);
                        }}));
    engine->workers_.push_back(std::move(worker));
  }
  return engine;
}

Engine::Engine(std::unique_ptr<runtime::Device> device, const EngineOptions& options,
               const base::Clock& clock)
    : options_(options), clock_(clock), device_(std::move(device)) {
  scheduler_ = std::make_unique<Scheduler>(options.place_count(), clock);
  // A set that the device could never hold is of no use here.
  const int64_t max_set_bytes =
      std::min(options.keys.host_budget_bytes, options.keys.device_budget_bytes);
  key_store_ = std::make_unique<KeyStore>(
      *device_,
      KeyStore::Options{.budget_bytes = options.keys.host_budget_bytes,
                        .max_set_bytes = max_set_bytes},
      [this](const StoredKeySet& keys) { key_residency_->Forget(keys); });
  key_residency_ = std::make_unique<KeyResidency>(*device_, options.keys.device_budget_bytes,
                                                  [this] { scheduler_->Wake(); });
}

Engine::~Engine() {
  if (const absl::Status status = Stop(); !status.ok()) {
    spdlog::error("engine: {}", std::string(status.message()));
  }
}

absl::Status Engine::AddProgram(std::shared_ptr<const Program> program) {
  const std::string& name = program->info().name;
  if (FindProgram(name).ok()) {
    return absl::InvalidArgumentError(absl::StrCat("program '", name, "' is there already"));
  }
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<PinnedPool> trees,
                           PinnedPool::Create(*program, options_.place_count(), *device_));
  auto served = std::make_shared<ServedProgram>(std::move(program), std::move(trees));
  scheduler_->AddProgram(*served);
  absl::MutexLock lock(&mu_);
  programs_.push_back(std::move(served));
  return absl::OkStatus();
}

absl::Status Engine::LoadProgram(std::string_view name) {
  CIPHERD_ASSIGN_OR_RETURN(const std::shared_ptr<ServedProgram> served, FindProgram(name));
  const absl::Time start = clock_.Now();
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Stream> stream,
                           device_->CreateStream(absl::StrCat("load ", served->info().name)));
  CIPHERD_ASSIGN_OR_RETURN(const ProgramBinding binding, served->program().Bind(*device_, *stream));
  std::vector<std::unique_ptr<ProgramPool>> pools;
  for (size_t i = 0; i < workers_.size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(
        std::unique_ptr<ProgramPool> pool,
        ProgramPool::Create(served->program(), binding, options_.instances, options_.warmup,
                            *device_, *stream, [this] { scheduler_->Wake(); }));
    pools.push_back(std::move(pool));
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->AddProgram(*served, std::move(pools[i]));
  }
  SetReady(*served, true);
  spdlog::info("program '{}' version {} is ready: {} instances on {} workers after {:.2f} s",
               served->info().name, served->info().version, options_.instances, workers_.size(),
               absl::ToDoubleSeconds(clock_.Now() - start));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ServedProgram>> Engine::FindProgram(std::string_view name) const {
  absl::MutexLock lock(&mu_);
  for (const std::shared_ptr<ServedProgram>& program : programs_) {
    if (program->info().name == name) return program;
  }
  return WithReason(absl::NotFoundError(absl::StrCat("unknown program '", Shown(name), "'")),
                    FailureReason::kUnknownProgram);
}

std::vector<std::shared_ptr<ServedProgram>> Engine::programs() const {
  absl::MutexLock lock(&mu_);
  return programs_;
}

RequestPtr Engine::Open(RequestHead head) {
  std::string label = head.program;
  if (!FindProgram(head.program).ok()) {
    label = kUnknownProgramLabel;
    head.program = Shown(head.program);
  }
  return std::make_shared<Request>(std::move(head), label, ledger_, clock_);
}

absl::Status Engine::Admit(Request& request) {
  CIPHERD_RETURN_IF_ERROR(request.CheckAlive());
  if (is_draining()) {
    return WithReason(absl::UnavailableError("the daemon is draining"),
                      FailureReason::kUnavailable);
  }
  const RequestHead& head = request.head();
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<ServedProgram> program, FindProgram(head.program));
  if (!program->is_ready()) {
    return WithReason(
        absl::UnavailableError(absl::StrCat("program '", head.program, "' is not ready")),
        FailureReason::kUnavailable);
  }
  KeySetRef keys = no_keys_;
  if (program->info().keys.size() > 0 || !head.key_set_id.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(keys, key_store_->Find(head.tenant, head.key_set_id));
    CIPHERD_RETURN_IF_ERROR(CheckKeysFit(*keys, program->info().keys, program->info().context_id));
  }
  std::optional<PinnedPool::Lease> trees = program->trees().TryLease();
  if (!trees.has_value()) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat("program '", head.program,
                                                                "': all ", program->trees().size(),
                                                                " places for requests are taken")),
                      FailureReason::kOverloaded);
  }
  request.Grant(std::move(program), std::move(keys), *std::move(trees));
  return absl::OkStatus();
}

void Engine::Submit(const RequestPtr& request, Request::Continuation continuation) {
  request->set_continuation(continuation);
  const absl::Status status = scheduler_->Enqueue(request);
  if (status.ok()) return;
  request->Finish(RequestState::kReceiving, status);
  continuation(status);
}

void Engine::Cancel(const RequestPtr& request) { scheduler_->Cancel(request); }

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
  absl::Status status;
  for (const std::unique_ptr<Worker>& worker : workers_) status.Update(worker->Stop());
  for (const std::shared_ptr<ServedProgram>& program : programs()) {
    status.Update(program->trees().Close());
  }
  return status;
}

void Engine::OnWorkerFault(const absl::Status& cause) {
  const auto is_healthy = [](const std::unique_ptr<Worker>& worker) {
    return worker->is_healthy();
  };
  // The workers share one device, whose failure is every worker's.
  const bool others_serve =
      device_->health().ok() && std::any_of(workers_.begin(), workers_.end(), is_healthy);
  if (others_serve) return;
  for (const std::shared_ptr<ServedProgram>& program : programs()) SetReady(*program, false);
  scheduler_->Close(
      WithReason(absl::UnavailableError("the device failed"), FailureReason::kUnavailable));
}

void Engine::SetReady(ServedProgram& program, bool ready) {
  program.set_ready(ready);
  if (readiness_listener_) readiness_listener_(program.info().name, ready);
}

}  // namespace cipherd::engine
