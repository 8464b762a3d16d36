#include "server/command_line.h"

#include <cstdint>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "server/version.h"

namespace cipherd::server {
namespace {

// A duration flag in seconds.
void AddSeconds(CLI::App& app, const std::string& name, absl::Duration& target,
                const std::string& help) {
  app.add_option_function<double>(
         name, [&target](double seconds) { target = absl::Seconds(seconds); }, help + " (seconds)")
      ->default_str(target == absl::InfiniteDuration()
                        ? "none"
                        : std::to_string(absl::ToInt64Seconds(target)));
}

// A flag of bytes that takes suffixes: 512MiB, 4GiB.
template <typename Bytes>
void AddBytes(CLI::App& app, const std::string& name, Bytes& target, const std::string& help) {
  app.add_option(name, target, help)
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->capture_default_str();
}

void AddListenFlags(CLI::App& app, ListenOptions& listen) {
  app.add_option("--listen", listen.address, "Address to serve: host:port or unix:path")
      ->capture_default_str();
  app.add_option("--port-file", listen.port_file, "Write the chosen port to this file");
  app.add_option("--tls-cert", listen.tls.certificate_file, "Server certificate chain, PEM");
  app.add_option("--tls-key", listen.tls.key_file, "Server private key, PEM");
  app.add_option("--tls-client-ca", listen.tls.client_ca_file,
                 "CA of client certificates, PEM; makes them compulsory, and a certificate's name "
                 "the tenant");
  app.add_flag("--allow-plaintext-remote", listen.allow_plaintext_remote,
               "Listen beyond loopback without TLS");
}

void AddTokenFlags(CLI::App& app, TokenOptions& tokens) {
  CLI::Option* const keys = app.add_option(
      "--token-keys", tokens.keys,
      "PEM file with the public key that tokens are signed with, or a directory with "
      "KID.pem for each; makes a token compulsory, and its subject the tenant");
  app.add_option("--token-issuer", tokens.issuer, "What a token's iss must be")->needs(keys);
  app.add_option("--token-audience", tokens.audience, "What a token's aud must be, or have in it")
      ->needs(keys);
  app.add_option("--token-tenant-claim", tokens.tenant_claim, "The claim that names the tenant")
      ->needs(keys)
      ->capture_default_str();
  AddSeconds(app, "--token-leeway", tokens.leeway,
             "How far clocks may be apart when a token begins and ends");
}

void AddDeviceFlags(CLI::App& app, ServerOptions& options) {
  app.add_option("--device", options.device.spec,
                 "auto (the first GPU, else the CPU), cpu, cuda:N, several with commas between "
                 "them, or cuda:all")
      ->capture_default_str();
  app.add_option("--workers", options.engine.workers,
                 "Workers of each device, each with its own transfer, compute and output streams")
      ->capture_default_str();
  app.add_option_function<double>(
         "--worker-spin", [&spin = options.engine.spin](double s) { spin = absl::Seconds(s); },
         "With CUDA, how long a worker's threads look for the next request, and for the end of a "
         "lone one, before they sleep: a processor's time against microseconds of latency "
         "(seconds)")
      ->default_str("0.005 with four processors a worker or more, else 0.0002");
  app.add_option("--instances", options.engine.instances,
                 "Captured instances of each program on each worker")
      ->capture_default_str();
  app.add_option("--queue-capacity", options.engine.queue_capacity,
                 "Requests of one program that may wait")
      ->capture_default_str();
  app.add_option("--warmup", options.engine.warmup, "Uncaptured runs before each capture")
      ->capture_default_str();
  AddBytes(app, "--constant-memory", options.engine.constant_memory_bytes,
           "Device memory for the constants of one program; where it has more, evaluations copy "
           "them in tiles");
  AddBytes(app, "--device-memory", options.device.pools.device_memory.budget_bytes,
           "Budget of device memory, of each device");
  AddBytes(
      app, "--pinned-memory", options.device.pools.pinned_memory.budget_bytes,
      "Budget of pinned host memory, of each device: requests and key sets are in the first's");
  AddBytes(app, "--pinned-at-start", options.device.pools.pinned_memory.initial_bytes,
           "Pinned host memory that is taken at the start, at once in slabs");
  AddBytes(app, "--key-host-memory", options.engine.keys.host_budget_bytes,
           "Budget of key sets in pinned host memory");
  AddBytes(app, "--key-device-memory", options.engine.keys.device_budget_bytes,
           "Budget of key sets in device memory, of each device");
}

void AddKeyFlags(CLI::App& app, engine::KeyOptions& keys) {
  app.add_option("--key-directory", keys.directory,
                 "Keep key sets in files here, so that they survive a restart; without, a set that "
                 "has to make room is uploaded again by its owner");
  app.add_flag("--shared-key-directory", keys.is_directory_shared,
               "Other daemons use the key directory, too: what one has stored, all find");
  AddBytes(app, "--key-file-budget", keys.file_budget_bytes, "Budget of key sets in files");
  AddSeconds(app, "--key-ttl", keys.time_to_live, "A key set unused for so long is dropped");
}

void AddQuotaFlags(CLI::App& app, engine::EngineOptions& options) {
  AddBytes(app, "--tenant-key-bytes", options.keys.tenant_budget_bytes,
           "Quota of each tenant: key sets in all tiers");
  app.add_option("--tenant-requests", options.quotas.max_requests,
                 "Quota of each tenant: evaluations under way; 0: no quota")
      ->capture_default_str();
  AddBytes(app, "--tenant-request-bytes", options.quotas.max_request_bytes,
           "Quota of each tenant: inputs and outputs of those; 0: no quota");
  app.add_option("--tenant-rate", options.quotas.requests_per_second,
                 "Quota of each tenant: evaluations a second; 0: no quota")
      ->capture_default_str();
  app.add_option("--tenant-burst", options.quotas.request_burst,
                 "Evaluations at once after a quiet time, where there is a rate; 0: what a second "
                 "brings")
      ->capture_default_str();
}

void AddLimitFlags(CLI::App& app, ServerOptions& options) {
  AddBytes(app, "--max-chunk", options.limits.max_chunk_bytes, "Payload of one stream message");
  AddBytes(app, "--max-unary", options.limits.max_unary_bytes, "Payload of one unary message");
  AddBytes(app, "--max-request", options.limits.max_request_bytes, "Inputs of one evaluation");
  AddBytes(app, "--max-key-set", options.limits.max_key_set_bytes, "One key set");
  AddBytes(app, "--max-infer", options.inference.max_payload_bytes,
           "Payload of one message of ModelInfer (Open Inference Protocol), each way");
  AddBytes(app, "--infer-memory", options.inference.message_memory_bytes,
           "Budget of such messages");
  app.add_option("--max-connections", options.transport.connections.max_connections,
                 "Connections at once; fewer where there may not be so many open files")
      ->capture_default_str();
  app.add_option("--max-connections-per-peer",
                 options.transport.connections.max_connections_per_peer,
                 "Connections at once of one address, or network of 64 bits of IPv6")
      ->capture_default_str();
  AddSeconds(app, "--handshake-timeout", options.transport.handshake_timeout,
             "For a new connection to say what it wants, TLS included");
  AddSeconds(app, "--max-connection-idle", options.transport.max_connection_idle,
             "After which a connection without a call is closed");
  app.add_option("--max-streams", options.transport.max_concurrent_streams,
                 "Calls under way on one connection")
      ->capture_default_str();
  app.add_option("--max-calls", options.transport.calls.max_calls,
                 "Uploads and evaluations under way on all connections")
      ->capture_default_str();
  app.add_option("--max-calls-per-caller", options.transport.calls.max_calls_per_caller,
                 "The same of one caller: by certificate, or of one address, where there are none")
      ->capture_default_str();
  app.add_option("--max-calls-per-tenant", options.transport.calls.max_calls_per_tenant,
                 "The same of one tenant by token")
      ->capture_default_str();
  app.add_option("--max-lookups", options.transport.lookups.max_calls,
                 "Other calls of tenants under way on all connections")
      ->capture_default_str();
  app.add_option("--max-lookups-per-caller", options.transport.lookups.max_calls_per_caller,
                 "The same of one caller")
      ->capture_default_str();
  app.add_option("--max-lookups-per-tenant", options.transport.lookups.max_calls_per_tenant,
                 "The same of one tenant by token")
      ->capture_default_str();
  AddSeconds(app, "--stall-timeout", options.transport.stall_timeout,
             "For a client to send the next message of a stream, or to read one");
  AddSeconds(app, "--upload-resume-timeout", options.transport.upload_resume_timeout,
             "For a client to go on with an upload of keys that broke");
  AddBytes(app, "--transport-memory", options.transport.buffer_bytes, "Budget of gRPC's buffers");
  AddSeconds(app, "--keepalive", options.transport.keepalive_interval,
             "Idle time after which a connection is pinged");
  AddSeconds(app, "--keepalive-timeout", options.transport.keepalive_timeout,
             "Time for the answer to such a ping");
  AddSeconds(app, "--min-client-ping-interval", options.transport.min_client_ping_interval,
             "Clients that ping more often are disconnected");
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv, int& exit_code) {
  CommandLine result;
  ServerOptions& options = result.options;
  ProbeOptions probe;

  CLI::App app("cipherd evaluates encrypted data for remote clients. It never holds a secret key.",
               "cipherd");
  app.set_version_flag("--version", kVersion);
  app.set_config("--config", "", "Read flags from this file: lines of flag = value");
  app.add_option("--programs", options.programs_directory,
                 "Directory with one directory a program");
  app.add_flag("--allow-insecure-contexts", options.allow_insecure_contexts,
               "Admit contexts below 128-bit security. For tests");
  app.add_option("--metrics-listen", options.metrics_address,
                 "Address of the metrics page, or none")
      ->capture_default_str();
  app.add_option("--health-listen", options.health_address,
                 "Address that has the health service alone, without TLS, or none")
      ->default_str("none");
  AddListenFlags(app, options.listen);
  AddTokenFlags(app, options.tokens);
  AddDeviceFlags(app, options);
  AddKeyFlags(app, options.engine.keys);
  AddQuotaFlags(app, options.engine);
  AddLimitFlags(app, options);
  AddSeconds(app, "--free-memory-interval", options.free_memory_interval,
             "Between returns of free heap to the system");
  AddSeconds(app, "--lame-duck", options.shutdown.lame_duck,
             "Between NOT_SERVING and the refusal of requests; SIGTERM again ends it");
  AddSeconds(app, "--drain-timeout", options.shutdown.drain_timeout,
             "For admitted requests to complete");
  app.add_option("--log-level", result.log_level, "trace, debug, info, warn, error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
  app.add_option("--log-format", result.log_format, "logfmt or json")
      ->transform(CLI::CheckedTransformer(std::map<std::string, LogFormat>{
          {"logfmt", LogFormat::kLogfmt}, {"json", LogFormat::kJson}}))
      ->default_str("logfmt");
  CLI::Option* const probe_flag = app.add_option(
      "--probe", probe.address, "Ask the daemon at this address for its health, and exit");
  app.add_option("--probe-service", probe.service, "Ask for this program's health")
      ->needs(probe_flag);
  CLI::Option* const ca_flag =
      app.add_option("--probe-ca", probe.ca_file, "CA of the daemon's certificate, PEM")
          ->needs(probe_flag);
  app.add_option("--probe-name", probe.server_name,
                 "Name in the daemon's certificate, where it is not that of the address")
      ->needs(ca_flag);
  CLI::Option* const certificate_flag =
      app.add_option("--probe-cert", probe.certificate_file,
                     "Own certificate, for a daemon that demands one, PEM")
          ->needs(ca_flag);
  CLI::Option* const key_flag =
      app.add_option("--probe-key", probe.key_file, "Its private key, PEM")
          ->needs(certificate_flag);
  certificate_flag->needs(key_flag);

  // The library reports by exceptions; they end here.
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error);
    if (exit_code == 0) return absl::CancelledError("help was asked for");
    return absl::InvalidArgumentError(error.what());
  }
  if (options.metrics_address == "none") options.metrics_address.clear();
  if (options.health_address == "none") options.health_address.clear();
  if (probe_flag->count() > 0) result.probe = probe;
  return result;
}

}  // namespace cipherd::server
