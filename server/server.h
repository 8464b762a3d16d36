// The daemon: device, engine, services, health, reflection and metrics, from start to drain.
//
//   CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::Start(options, clock));
//   CIPHERD_RETURN_IF_ERROR(server->LoadPrograms());      // NOT_SERVING until then
//   ... wait for a signal ...
//   server->BeginLameDuck();                              // NOT_SERVING, and serves on
//   ... give load balancers time to look elsewhere ...
//   CIPHERD_RETURN_IF_ERROR(server->Shutdown());
//
// Threading: one thread calls at a time, but for BeginLameDuck; RPCs arrive on gRPC's own.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/runtime/device.h"
#include "grpcpp/channel.h"
#include "grpcpp/server.h"
#include "server/engine/engine.h"
#include "server/engine/task_thread.h"
#include "server/evaluation_service.h"
#include "server/health_service.h"
#include "server/inference_service.h"
#include "server/listener.h"
#include "server/metrics.h"
#include "server/options.h"
#include "server/program_registry.h"
#include "server/tls_files.h"
#include "server/token_key_files.h"
#include "server/token_verifier.h"

namespace cipherd::server {

class Server {
 public:
  // Checks the programs, opens the devices and listens. Programs are known and not ready. `clock`
  // outlives the server. Errors: those of options, catalog and device; Unavailable where an address
  // is taken.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       const base::Clock& clock);
  // The same on devices that are open already, or on one.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       engine::Engine::Devices devices,
                                                       const base::Clock& clock);
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options,
                                                       std::unique_ptr<runtime::Device> device,
                                                       const base::Clock& clock);
  // Shuts down.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Captures and verifies every version of every program. A program is SERVING while any version of
  // it is ready, and the daemon while all programs are. Blocks. The first failure ends it.
  absl::Status LoadPrograms();

  // Looks at the programs' directory again: new versions are loaded beside those that serve,
  // changed ones replaced without dropping a request, missing ones unloaded. What cannot be loaded
  // leaves the version that serves, and those of its program that are missing, until a later look;
  // the first such error is returned after everything else was done. Blocks.
  absl::Status ReloadPrograms();

  // The daemon and every program are NOT_SERVING from here on, whatever is loaded; requests are
  // served as before. Any thread, any time. Idempotent.
  void BeginLameDuck();

  // BeginLameDuck; new requests are refused; admitted ones complete within the drain timeout; then
  // connections close and the engine stops. Blocks. Idempotent. DeadlineExceeded where requests had
  // to be cut off, FailedPrecondition where leases have leaked.
  absl::Status Shutdown();

  // 0 for an address that has none (unix:).
  int port() const { return port_; }
  // 0 where metrics are off.
  int metrics_port() const { return metrics_port_; }
  // Of the health service alone; 0 where that is off.
  int health_port() const { return health_port_; }
  // A channel to this server within the process, without a connection. For tests; calls are a
  // plaintext client's.
  std::shared_ptr<grpc::Channel> InProcessChannel() { return grpc_server_->InProcessChannel({}); }
  engine::Engine& engine() { return *engine_; }
  const Metrics& metrics() const { return metrics_; }
  const ProgramRegistry& programs() const { return *programs_; }

 private:
  Server(const ServerOptions& options, std::unique_ptr<ProgramRegistry> programs,
         std::unique_ptr<engine::Engine> engine);

  absl::Status Listen();
  absl::Status ListenForHealth();
  // When certificates end goes into the metrics, now and whenever others are taken.
  absl::Status OpenTlsFiles();
  // Callers need tokens from here on, where there are keys of them.
  absl::Status OpenTokenKeys();
  // What ReloadPrograms does, but for what is seen of it.
  absl::Status RescanPrograms();
  // Loads `program` in the place of those that it replaces; true once it serves. What goes wrong is
  // logged and goes into `status`.
  bool ReplaceProgram(const RegisteredProgramPtr& program, absl::Status& status);
  void OnReadiness(std::string_view program, bool ready);
  // The daemon serves where each of its programs does.
  void UpdateDaemonHealth();

  const ServerOptions options_;
  const codec::WireLimits limits_;
  const std::unique_ptr<ProgramRegistry> programs_;
  const std::unique_ptr<engine::Engine> engine_;
  Metrics metrics_;
  ConnectionTable connections_;
  ConnectionTable health_connections_;
  CallGate calls_;
  CallGate lookups_;
  CallGate checks_;
  StallWatch stalls_;
  UploadTable uploads_;
  // Both null where tenants have no tokens.
  std::unique_ptr<TokenKeyFiles> token_keys_;
  std::unique_ptr<TokenVerifier> tokens_;
  Callers callers_;
  // Asks nobody for a token.
  const Callers anybody_;
  const ServiceEnvironment environment_;
  HealthService health_;
  EvaluationService service_;
  InferenceService inference_;
  // Null without TLS.
  std::unique_ptr<TlsFiles> tls_files_;
  std::unique_ptr<grpc::Server> grpc_server_;
  // Has the health service alone, without TLS.
  std::unique_ptr<grpc::Server> health_server_;
  // Null where there is none; give the servers their connections.
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Listener> health_listener_;
  int port_ = 0;
  int metrics_port_ = 0;
  int health_port_ = 0;
  bool is_shut_down_ = false;
  // Returns free heap to the system.
  engine::TaskThread free_memory_;
  // Looks at the files of token keys; null where there are none.
  std::unique_ptr<engine::TaskThread> token_key_looks_;
};

}  // namespace cipherd::server
