#include "server/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
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

// " version 3", or nothing where none is named.
std::string ShownVersion(int64_t version) {
  return version == 0 ? "" : absl::StrCat(" version ", version);
}

}  // namespace

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
  const KeyOptions& keys = options_.keys;
  CIPHERD_ASSIGN_OR_RETURN(
      key_store_, KeyStore::Open(
                      *device_,
                      {.budget_bytes = keys.host_budget_bytes,
                       .max_set_bytes = keys.max_set_bytes(),
                       .tenant_budget_bytes = keys.tenant_budget_bytes,
                       .directory = keys.directory,
                       .file_budget_bytes = keys.file_budget_bytes,
                       .time_to_live = keys.time_to_live},
                      [this](const KeySetInfo& set) { key_residency_->Forget(set); }, clock_));
  return absl::OkStatus();
}

Engine::~Engine() {
  if (const absl::Status status = Stop(); !status.ok()) {
    spdlog::error("engine: {}", std::string(status.message()));
  }
}

absl::Status Engine::AddProgram(std::shared_ptr<const Program> program,
                                const ServingSettings& settings) {
  const ProgramInfo& info = program->info();
  const auto is_same = [&](const ServedProgram& served) {
    return served.info().version == info.version;
  };
  if (Find(info.name, is_same) != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("program '", info.name, "' version ", info.version, " is there already"));
  }
  return Add(std::move(program), settings).status();
}

absl::StatusOr<Engine::ServedPtr> Engine::Add(std::shared_ptr<const Program> program,
                                              const ServingSettings& settings) {
  CIPHERD_RETURN_IF_ERROR(settings.Validate());
  const ProgramInfo& info = program->info();
  if (const int64_t limit = options_.keys.max_set_bytes(); info.key_bytes > limit) {
    return absl::FailedPreconditionError(
        absl::StrCat("program '", info.name, "' reads keys of ", info.key_bytes,
                     " bytes, and a key set of ", limit,
                     " is the largest that the budgets of host memory, device memory, files and "
                     "tenants admit: raise the smallest of them"));
  }
  const int places = settings.place_count(options_.workers);
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<PinnedPool> trees,
                           PinnedPool::Create(*program, places, *device_));
  auto served = std::make_shared<ServedProgram>(std::move(program), std::move(trees), settings);
  scheduler_->AddProgram(*served, places);
  absl::MutexLock lock(&mu_);
  programs_.push_back(served);
  return served;
}

absl::Status Engine::LoadProgram(std::string_view name, int64_t version) {
  const ServedPtr served = Find(name, [&](const ServedProgram& candidate) {
    return version == 0 || candidate.info().version == version;
  });
  if (served == nullptr) return FindProgram(name, version).status();
  return Load(*served, /*on_ready=*/nullptr);
}

absl::Status Engine::Load(ServedProgram& served, const std::function<void()>& on_ready) {
  const ProgramInfo& info = served.info();
  if (served.is_loaded()) {
    return absl::FailedPreconditionError(
        absl::StrCat("program '", info.name, "' version ", info.version, " is loaded already"));
  }
  const absl::Time start = clock_.Now();
  const size_t bytes_before = device_->device_memory_stats().allocated_bytes;
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Stream> stream,
                           device_->CreateStream(absl::StrCat("load ", info.name)));
  CIPHERD_ASSIGN_OR_RETURN(ProgramBinding bound, served.program().Bind(*device_, *stream));
  const auto binding = std::make_shared<const ProgramBinding>(std::move(bound));
  std::vector<std::unique_ptr<ProgramPool>> pools;
  for (size_t i = 0; i < workers_.size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<ProgramPool> pool, BuildPool(served, *binding));
    pools.push_back(std::move(pool));
  }
  served.set_binding(binding);
  const ServedPtr shared = Find(info.name, [&](const ServedProgram& s) { return &s == &served; });
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->AddProgram(shared, std::move(pools[i]));
  }
  UpdateReadiness(served, on_ready);
  const size_t bytes_after = device_->device_memory_stats().allocated_bytes;
  spdlog::info(
      "program '{}' version {} is loaded: {} instances of batch sizes [{}] on {} workers after "
      "{:.2f} s, about {} bytes of device memory and {} pinned",
      info.name, info.version, served.settings().instances,
      absl::StrJoin(served.settings().batch_sizes, ", "), workers_.size(),
      absl::ToDoubleSeconds(clock_.Now() - start),
      bytes_after - std::min(bytes_before, bytes_after), served.trees().bytes());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ProgramPool>> Engine::BuildPool(const ServedProgram& served,
                                                               const ProgramBinding& binding) {
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Stream> stream,
                           device_->CreateStream(absl::StrCat("capture ", served.info().name)));
  return ProgramPool::Create(served.program(), binding, served.settings(), *device_, *stream);
}

absl::Status Engine::ReplaceProgram(std::shared_ptr<const Program> program,
                                    const ServingSettings& settings, absl::Duration timeout,
                                    const std::function<void()>& on_ready) {
  std::vector<ServedPtr> old = programs();
  std::erase_if(
      old, [&](const ServedPtr& served) { return served->info().name != program->info().name; });
  return Replace(std::move(program), settings, old, timeout, on_ready);
}

absl::Status Engine::ReplaceVersions(std::shared_ptr<const Program> program,
                                     const ServingSettings& settings,
                                     std::span<const std::shared_ptr<const Program>> replaced,
                                     absl::Duration timeout,
                                     const std::function<void()>& on_ready) {
  std::vector<ServedPtr> old;
  for (const std::shared_ptr<const Program>& other : replaced) {
    if (ServedPtr served = Find(*other); served != nullptr) old.push_back(std::move(served));
  }
  return Replace(std::move(program), settings, old, timeout, on_ready);
}

absl::Status Engine::Replace(std::shared_ptr<const Program> program,
                             const ServingSettings& settings, const std::vector<ServedPtr>& old,
                             absl::Duration timeout, const std::function<void()>& on_ready) {
  CIPHERD_ASSIGN_OR_RETURN(const ServedPtr served, Add(std::move(program), settings));
  if (const absl::Status loaded = Load(*served, on_ready); !loaded.ok()) {
    Unload(served, absl::ZeroDuration()).IgnoreError();
    return loaded;
  }
  absl::Status unloaded;
  const absl::Time deadline = absl::Now() + timeout;
  // All of them first, so that no request lands on one that is about to go.
  for (const ServedPtr& other : old) other->set_retired();
  for (const ServedPtr& other : old) {
    unloaded.Update(Unload(other, std::max(deadline - absl::Now(), absl::ZeroDuration())));
  }
  return unloaded;
}

absl::Status Engine::UnloadProgram(std::string_view name, int64_t version, absl::Duration timeout) {
  CIPHERD_ASSIGN_OR_RETURN(const ServedPtr served, FindProgram(name, version));
  return Unload(served, timeout);
}

absl::Status Engine::UnloadProgram(const Program& program, absl::Duration timeout) {
  const ServedPtr served = Find(program);
  if (served != nullptr) return Unload(served, timeout);
  return absl::NotFoundError(absl::StrCat("program '", program.info().name, "' version ",
                                          program.info().version, " is not loaded"));
}

absl::Status Engine::Unload(const ServedPtr& served, absl::Duration timeout) {
  const ProgramInfo& info = served->info();
  served->set_retired();
  UpdateReadiness(*served);
  if (!served->trees().Drain(timeout)) {
    return absl::DeadlineExceededError(
        absl::StrCat("program '", info.name, "' version ", info.version, ": ",
                     served->trees().leased_count(), " requests have not ended yet"));
  }
  scheduler_->RemoveProgram(*served);
  absl::Status status;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    status.Update(worker->RemoveProgram(*served));
  }
  // Requests that have ended may still refer to it; what it holds goes now.
  served->set_binding(nullptr);
  {
    absl::MutexLock lock(&mu_);
    std::erase(programs_, served);
  }
  spdlog::info("program '{}' version {} is unloaded", info.name, info.version);
  return status;
}

Engine::ServedPtr Engine::Find(std::string_view name,
                               const std::function<bool(const ServedProgram&)>& accepts) const {
  absl::MutexLock lock(&mu_);
  ServedPtr best;
  for (const ServedPtr& served : programs_) {
    if (served->info().name != name || !accepts(*served)) continue;
    // Of equal versions the one that was added last.
    if (best == nullptr || served->info().version >= best->info().version) best = served;
  }
  return best;
}

Engine::ServedPtr Engine::Find(const Program& program) const {
  return Find(program.info().name,
              [&](const ServedProgram& served) { return &served.program() == &program; });
}

bool Engine::IsReady(const Program& program) const {
  const ServedPtr served = Find(program);
  return served != nullptr && served->is_ready();
}

absl::StatusOr<std::shared_ptr<ServedProgram>> Engine::FindProgram(std::string_view name,
                                                                   int64_t version) const {
  const auto fits = [&](const ServedProgram& served) {
    return version == 0 || served.info().version == version;
  };
  ServedPtr served = Find(name, [&](const ServedProgram& s) { return fits(s) && s.is_ready(); });
  if (served == nullptr) served = Find(name, fits);
  if (served != nullptr) return served;
  return WithReason(absl::NotFoundError(
                        absl::StrCat("unknown program '", Shown(name), "'", ShownVersion(version))),
                    FailureReason::kUnknownProgram);
}

std::vector<std::shared_ptr<ServedProgram>> Engine::programs() const {
  absl::MutexLock lock(&mu_);
  return programs_;
}

RequestPtr Engine::Open(RequestHead head) {
  std::string label = head.program;
  absl::StatusOr<ServedPtr> served = FindProgram(head.program, head.version);
  // A version that is not here counts under its program all the same.
  if (!served.ok() && head.version != 0) served = FindProgram(head.program);
  if (served.ok()) {
    const ServingSettings& settings = (*served)->settings();
    const absl::Time now = clock_.Now();
    if (head.deadline == absl::InfiniteFuture()) head.deadline = now + settings.default_timeout;
    head.deadline = std::min(head.deadline, now + settings.longest_timeout);
  } else {
    label = kUnknownProgramLabel;
    head.program = Shown(head.program);
  }
  return std::make_shared<Request>(std::move(head), label, ledger_, clock_);
}

absl::Status Engine::Admit(Request& request, const Program* only) {
  CIPHERD_RETURN_IF_ERROR(request.CheckAlive());
  if (is_draining()) {
    return WithReason(absl::UnavailableError("the daemon is draining"),
                      FailureReason::kUnavailable);
  }
  const RequestHead& head = request.head();
  std::optional<TenantQuotas::Admission> admission;
  while (true) {
    CIPHERD_ASSIGN_OR_RETURN(ServedPtr program, FindReady(head, only));
    const ProgramInfo& info = program->info();
    if (!admission.has_value()) {
      CIPHERD_ASSIGN_OR_RETURN(admission,
                               quotas_.Admit(head.tenant, info.input_bytes + info.output_bytes));
    }
    const bool reads_keys = info.keys.size() > 0 || !head.key_set_id.empty();
    if (reads_keys) {
      CIPHERD_ASSIGN_OR_RETURN(const KeySetInfoRef keys,
                               key_store_->Find(head.tenant, head.key_set_id));
      CIPHERD_RETURN_IF_ERROR(CheckKeysFit(*keys, info.keys, info.context_id));
    }
    std::optional<PinnedPool::Lease> trees = program->trees().TryLease();
    if (trees.has_value()) {
      request.Grant(std::move(program),
                    reads_keys ? key_store_->Acquire(head.tenant, head.key_set_id) : nullptr,
                    *std::move(trees), *std::move(admission));
      return absl::OkStatus();
    }
    // Where another version has taken its place meanwhile, that one serves.
    if (program->is_retired()) continue;
    return WithReason(absl::ResourceExhaustedError(absl::StrCat("program '", head.program,
                                                                "': all ", program->trees().size(),
                                                                " places for requests are taken")),
                      FailureReason::kOverloaded);
  }
}

absl::StatusOr<Engine::ServedPtr> Engine::FindReady(const RequestHead& head,
                                                    const Program* only) const {
  ServedPtr program;
  if (only != nullptr) {
    program = Find(*only);
  } else {
    CIPHERD_ASSIGN_OR_RETURN(program, FindProgram(head.program, head.version));
  }
  if (program != nullptr && program->is_ready()) return program;
  return WithReason(
      absl::UnavailableError(absl::StrCat("program '", head.program, "'",
                                          ShownVersion(head.version), " is not ready")),
      FailureReason::kUnavailable);
}

void Engine::Submit(const RequestPtr& request, Request::Continuation continuation) {
  request->set_continuation(continuation);
  const std::shared_ptr<KeySetTicket> ticket = request->key_ticket();
  if (ticket == nullptr) {
    request->set_keys(no_keys_);
    Enqueue(request, continuation);
    return;
  }
  ticket->Await([this, request, continuation](const absl::StatusOr<KeySetRef>& keys) {
    if (keys.ok()) {
      request->set_keys(*keys);
      Enqueue(request, continuation);
      return;
    }
    request->Finish(RequestState::kReceiving, keys.status());
    continuation(keys.status());
  });
  // Who cancelled before the ticket was there has not told it.
  if (ticket->is_resolved()) return;
  if (const absl::Status alive = request->CheckAlive(); !alive.ok()) ticket->Abandon(alive);
}

void Engine::Enqueue(const RequestPtr& request, const Request::Continuation& continuation) {
  const absl::Status status = scheduler_->Enqueue(request);
  if (status.ok()) return;
  request->Finish(RequestState::kReceiving, status);
  continuation(status);
}

void Engine::Cancel(const RequestPtr& request) {
  scheduler_->Cancel(request);
  // One that waits for its keys waits no longer.
  if (const auto ticket = request->key_ticket(); ticket != nullptr && !ticket->is_resolved()) {
    ticket->Abandon(request->CheckAlive());
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

void Engine::UpdateReadiness() {
  for (const ServedPtr& served : programs()) UpdateReadiness(*served);
}

void Engine::UpdateReadiness(ServedProgram& served, const std::function<void()>& before_told) {
  absl::MutexLock lock(&readiness_mu_);
  served.set_ready(served.is_loaded() && !served.is_retired() && device_->health().ok() &&
                   AnyWorkerServes());
  if (before_told) before_told();
  const std::string& name = served.info().name;
  const bool is_ready = Find(name, [](const ServedProgram& s) { return s.is_ready(); }) != nullptr;
  if (std::exchange(told_ready_[name], is_ready) == is_ready) return;
  if (readiness_listener_) readiness_listener_(name, is_ready);
}

}  // namespace cipherd::engine
