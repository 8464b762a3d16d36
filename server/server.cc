#include "server/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/allocator_policy.h"
#include "core/base/status_macros.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "server/device_list.h"
#include "server/file_limit.h"
#include "server/transport.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

// For what is left on connections when every request has ended.
constexpr std::chrono::seconds kTransportGrace{5};
// Between looks at the files of token keys.
constexpr absl::Duration kTokenKeyInterval = absl::Seconds(1);
// Threads that capture at start. A capture keeps one core busy, and the device now and then.
constexpr size_t kMaxLoaders = 4;
// Of the port that has the health service alone. Whoever asks there has nothing to ask at length,
// and nobody may keep an orchestrator from it.
constexpr ConnectionLimits kHealthConnections = {.max_connections = 256,
                                                 .max_connections_per_peer = 32};

// Calls of the health service that wait for their message. Many, since it is seldom that there are
// any: only where peers hold them back, who must not keep an orchestrator from its answer.
constexpr CallLimits kHealthChecks = {.max_calls = 2048, .max_calls_per_caller = 512};

// Whoever asks for health is answered, also where tenants need tokens.
ServiceEnvironment HealthEnvironment(const ServiceEnvironment& environment, CallGate& checks,
                                     const Callers& anybody) {
  return {.engine = environment.engine,
          .programs = environment.programs,
          .metrics = environment.metrics,
          .calls = environment.calls,
          .lookups = checks,
          .stalls = environment.stalls,
          .uploads = environment.uploads,
          .callers = anybody,
          .limits = environment.limits,
          .insecure_contexts_allowed = environment.insecure_contexts_allowed};
}

void ReturnFreeMemory() {
  const absl::Time start = absl::Now();
  base::ReturnFreeMemory();
  spdlog::debug("free heap returned in {:.1f} ms", absl::ToDoubleMilliseconds(absl::Now() - start));
}

void NoteFailure(const programs::ProgramPlace& place, const absl::Status& status,
                 absl::Status& first_failure) {
  if (status.ok()) return;
  spdlog::error("reload of program '{}': {}", place.path(), std::string(status.ToString()));
  first_failure.Update(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      const base::Clock& clock) {
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<runtime::DeviceId> ids,
                           ParseDeviceList(options.device.spec, runtime::CudaDeviceCount()));
  CIPHERD_ASSIGN_OR_RETURN(engine::Engine::Devices devices, OpenDevices(ids, options.device.pools));
  return Start(options, std::move(devices), clock);
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      std::unique_ptr<runtime::Device> device,
                                                      const base::Clock& clock) {
  engine::Engine::Devices devices;
  devices.push_back(std::move(device));
  return Start(options, std::move(devices), clock);
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      engine::Engine::Devices devices,
                                                      const base::Clock& clock) {
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  const ckks::SecurityPolicy policy = options.allow_insecure_contexts
                                          ? ckks::SecurityPolicy::kAllowInsecure
                                          : ckks::SecurityPolicy::k128BitClassical;
  if (options.allow_insecure_contexts) {
    spdlog::warn(
        "INSECURE CONTEXTS ARE ADMITTED: what clients encrypt under them can be broken. "
        "For tests only.");
  }
  CIPHERD_ASSIGN_OR_RETURN(
      std::unique_ptr<ProgramRegistry> programs,
      ProgramRegistry::Load(options.programs_directory, policy, options.engine.DefaultServing()));
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<engine::Engine> engine,
                           engine::Engine::Create(std::move(devices), options.engine, clock));
  spdlog::info("cipherd {} on {} ({})", kVersion, DeviceIds(*engine), DeviceNames(*engine));
  std::unique_ptr<Server> server(new Server(options, std::move(programs), std::move(engine)));
  for (const RegisteredProgramPtr& program : server->programs_->programs()) {
    CIPHERD_RETURN_IF_ERROR(server->engine_->AddProgram(program->program, program->serving));
    server->health_.SetServing(program->info().name, false);
    server->metrics_.AddProgram(program->info().name);
  }
  CIPHERD_RETURN_IF_ERROR(server->Listen());
  return server;
}

Server::Server(const ServerOptions& options, std::unique_ptr<ProgramRegistry> programs,
               std::unique_ptr<engine::Engine> engine)
    : options_(options),
      limits_(options.EffectiveLimits()),
      programs_(std::move(programs)),
      engine_(std::move(engine)),
      connections_(WithinFileLimit(options.transport.connections), engine_->clock()),
      health_connections_(kHealthConnections, engine_->clock()),
      calls_(options.transport.calls),
      lookups_(options.transport.lookups),
      checks_(kHealthChecks),
      stalls_(options.transport.stall_timeout, engine_->clock()),
      uploads_(options.transport.upload_resume_timeout, engine_->clock()),
      environment_({.engine = *engine_,
                    .programs = *programs_,
                    .metrics = metrics_,
                    .calls = calls_,
                    .lookups = lookups_,
                    .stalls = stalls_,
                    .uploads = uploads_,
                    .callers = callers_,
                    .limits = limits_,
                    .insecure_contexts_allowed = options_.allow_insecure_contexts}),
      health_(HealthEnvironment(environment_, checks_, anybody_)),
      service_(environment_),
      inference_(environment_, health_, options_.inference),
      free_memory_("free memory",
                   {.interval = options_.free_memory_interval, .run = ReturnFreeMemory}) {
  engine_->set_readiness_listener(
      [this](std::string_view program, bool ready) { OnReadiness(program, ready); });
  metrics_.CollectFrom(*engine_);
  metrics_.CollectFrom(
      {.connections = connections_, .work = calls_, .lookups = lookups_, .checks = checks_});
}

Server::~Server() {
  if (const absl::Status status = Shutdown(); !status.ok()) {
    spdlog::error("shutdown: {}", std::string(status.ToString()));
  }
}

absl::Status Server::OpenTlsFiles() {
  if (!options_.listen.tls.is_enabled()) return absl::OkStatus();
  CIPHERD_ASSIGN_OR_RETURN(
      tls_files_,
      TlsFiles::Open(options_.listen.tls, engine_->clock(), [this](const TlsMaterial& material) {
        metrics_.SetCertificateExpiry("server", material.certificate_expiry);
        if (material.client_ca.empty()) return;
        metrics_.SetCertificateExpiry("client_ca", material.client_ca_expiry);
      }));
  return absl::OkStatus();
}

absl::Status Server::OpenTokenKeys() {
  if (!options_.tokens.is_enabled()) return absl::OkStatus();
  CIPHERD_ASSIGN_OR_RETURN(token_keys_,
                           TokenKeyFiles::Open(options_.tokens.keys, [this](bool is_in_force) {
                             metrics_.SetTokenKeysInForce(is_in_force);
                           }));
  tokens_ = std::make_unique<TokenVerifier>(options_.tokens, *token_keys_, engine_->clock());
  callers_.RequireTokens(*tokens_);
  if (!options_.listen.tls.is_enabled() && !IsLoopback(options_.listen.address)) {
    spdlog::warn("TOKENS COME WITHOUT TLS: who reads the network can use them until they end.");
  }
  token_key_looks_ = std::make_unique<engine::TaskThread>(
      "token keys",
      engine::Chore{.interval = kTokenKeyInterval, .run = [this] { token_keys_->Look(); }});
  return absl::OkStatus();
}

absl::Status Server::Listen() {
  CIPHERD_RETURN_IF_ERROR(OpenTlsFiles());
  CIPHERD_RETURN_IF_ERROR(OpenTokenKeys());
  // Takes effect for servers built afterwards; repeating it does no harm.
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  CIPHERD_ASSIGN_OR_RETURN(
      listener_,
      Listener::Open(options_.listen.address, options_.transport.keepalive_timeout, connections_));
  port_ = listener_->port();
  grpc::ServerBuilder builder;
  ApplyTransportOptions(options_, builder);
  listener_->AddTo(builder, MakeCredentials(tls_files_.get()));
  builder.RegisterService(&service_);
  builder.RegisterService(&inference_);
  builder.RegisterService(&health_);
  grpc_server_ = builder.BuildAndStart();
  if (grpc_server_ == nullptr) return absl::UnavailableError("the gRPC server does not start");
  listener_->Start();
  if (!options_.health_address.empty()) CIPHERD_RETURN_IF_ERROR(ListenForHealth());
  if (!options_.metrics_address.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(metrics_port_, metrics_.Serve(options_.metrics_address));
  }
  spdlog::info("listening on {} (port {}), metrics on port {}, health on port {}",
               options_.listen.address, port_, metrics_port_, health_port_);
  return absl::OkStatus();
}

absl::Status Server::ListenForHealth() {
  CIPHERD_ASSIGN_OR_RETURN(
      health_listener_, Listener::Open(options_.health_address,
                                       options_.transport.keepalive_timeout, health_connections_));
  health_port_ = health_listener_->port();
  grpc::ServerBuilder builder;
  ApplyHealthTransportOptions(options_.transport, builder);
  health_listener_->AddTo(builder, grpc::InsecureServerCredentials());
  builder.RegisterService(&health_);
  health_server_ = builder.BuildAndStart();
  if (health_server_ == nullptr) return absl::UnavailableError("the health server does not start");
  health_listener_->Start();
  return absl::OkStatus();
}

absl::Status Server::LoadPrograms() {
  const std::vector<RegisteredProgramPtr> programs = programs_->programs();
  std::vector<absl::Status> results(programs.size());
  std::atomic<size_t> next = 0;
  const auto load_some = [&] {
    for (size_t i = next++; i < programs.size(); i = next++) {
      results[i] = engine_->LoadProgram(programs[i]->info().name, programs[i]->info().version);
    }
  };
  std::vector<std::thread> loaders;
  for (size_t i = 1; i < std::min(programs.size(), kMaxLoaders); ++i) {
    loaders.emplace_back(load_some);
  }
  load_some();
  for (std::thread& loader : loaders) loader.join();
  for (const absl::Status& result : results) CIPHERD_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

absl::Status Server::ReloadPrograms() {
  const absl::Status status = RescanPrograms();
  metrics_.SetReloaded(status.ok());
  return status;
}

absl::Status Server::RescanPrograms() {
  // What requests held on to the last time may have come free.
  for (const auto& served : engine_->programs()) {
    if (!served->is_retired()) continue;
    engine_->UnloadProgram(served->program(), absl::ZeroDuration()).IgnoreError();
  }
  CIPHERD_ASSIGN_OR_RETURN(const ProgramRegistry::Changes changes, programs_->Rescan());
  absl::Status first_failure;
  std::set<std::string> incomplete;
  for (const ProgramRegistry::Changes::Entry& change : changes.changed) {
    if (!change.program.ok()) NoteFailure(change.place, change.program.status(), first_failure);
    if (!change.program.ok() || !ReplaceProgram(*change.program, first_failure)) {
      incomplete.insert(change.place.name);
    }
  }
  for (const RegisteredProgramPtr& program : changes.gone) {
    const programs::ProgramPlace& place = program->place;
    if (incomplete.contains(place.name)) {
      spdlog::warn("program '{}' is gone and serves on until the rest of '{}' can be loaded",
                   place.path(), place.name);
      continue;
    }
    // Not where one of the changed has taken its number.
    if (!programs_->Remove(program)) continue;
    NoteFailure(place, engine_->UnloadProgram(*program->program, options_.shutdown.drain_timeout),
                first_failure);
  }
  UpdateDaemonHealth();
  spdlog::info("programs looked at again: {} changed, {} gone", changes.changed.size(),
               changes.gone.size());
  return first_failure;
}

bool Server::ReplaceProgram(const RegisteredProgramPtr& program, absl::Status& status) {
  std::vector<std::shared_ptr<const engine::Program>> replaced;
  for (const RegisteredProgramPtr& other : programs_->ReplacedBy(*program)) {
    replaced.push_back(other->program);
  }
  bool serves = false;
  const auto on_ready = [&] {
    programs_->Set(program);
    metrics_.AddProgram(program->info().name);
    serves = true;
  };
  NoteFailure(program->place,
              engine_->ReplaceVersions(program->program, program->serving, replaced,
                                       options_.shutdown.drain_timeout, on_ready),
              status);
  return serves;
}

void Server::OnReadiness(std::string_view program, bool ready) {
  health_.SetServing(program, ready);
  UpdateDaemonHealth();
}

void Server::UpdateDaemonHealth() {
  const std::vector<RegisteredProgramPtr> programs = programs_->programs();
  const auto is_ready = [this](const RegisteredProgramPtr& program) {
    const auto served = engine_->FindProgram(program->info().name);
    return served.ok() && (*served)->is_ready();
  };
  health_.SetServing("", std::all_of(programs.begin(), programs.end(), is_ready));
}

void Server::BeginLameDuck() { health_.Shutdown(); }

absl::Status Server::Shutdown() {
  if (std::exchange(is_shut_down_, true)) return absl::OkStatus();
  BeginLameDuck();
  const bool drained = engine_->Drain(options_.shutdown.drain_timeout);
  health_.EndWatches();
  if (listener_ != nullptr) listener_->Stop();
  if (grpc_server_ != nullptr) {
    grpc_server_->Shutdown(std::chrono::system_clock::now() +
                           (drained ? kTransportGrace : std::chrono::seconds(0)));
  }
  // The last to go: what asks it is told NOT_SERVING to the end.
  if (health_listener_ != nullptr) health_listener_->Stop();
  if (health_server_ != nullptr) {
    health_server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  }
  metrics_.StopServing();
  CIPHERD_RETURN_IF_ERROR(engine_->Stop());
  spdlog::info("drained: {}", drained ? "every request has ended" : "requests were cut off");
  if (drained) return absl::OkStatus();
  return absl::DeadlineExceededError("requests were cut off at the end of the drain timeout");
}

}  // namespace cipherd::server
