// Everything that an operator can set, with its defaults.
//
//   ServerOptions options;
//   options.listen.address = "127.0.0.1:0";
//   CIPHERD_RETURN_IF_ERROR(options.Validate());
//
// Flags and the config file fill this structure (command_line.h); nothing else reads either. Plain
// values.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/runtime/device.h"
#include "proto/codec/wire_limits.h"
#include "proto/grpc_status/transport.h"
#include "server/call_gate.h"
#include "server/connection_table.h"
#include "server/engine/engine.h"

namespace cipherd::server {

// PEM files. Both of the first two, or none; a client CA makes every client present a certificate.
struct TlsOptions {
  std::string certificate_file;
  std::string key_file;
  std::string client_ca_file;

  bool is_enabled() const { return !certificate_file.empty(); }
};

// Tenants by signed tokens (token.h), instead of by certificates. Off without keys.
struct TokenOptions {
  // A PEM file with one public key, or a directory of them, each KID.pem (token_keys.h).
  std::string keys;
  // What `iss` and `aud` of every token must say: without them, a token that was made for another
  // service would be good here, too. The issuer is part of each tenant's name.
  std::string issuer;
  std::string audience;
  // The claim that names the tenant.
  std::string tenant_claim = "sub";
  // How far clocks may be apart: a token is good so long before its `nbf` and after its `exp`.
  absl::Duration leeway = absl::Seconds(30);

  bool is_enabled() const { return !keys.empty(); }
  // InvalidArgument naming the field.
  absl::Status Validate() const;
};

struct ListenOptions {
  // host:port or unix:path; port 0 takes a free one.
  std::string address = "127.0.0.1:7480";
  TlsOptions tls;
  // Without TLS, tenants and their ciphertexts are only as safe as the network.
  bool allow_plaintext_remote = false;
  // Receives the chosen port as a line of text, once the daemon listens. Empty: none.
  std::string port_file;
};

// Bounds of the transport. Those of messages are in WireLimits.
struct TransportOptions {
  // Of all peers, and of one. Fewer where the process may not have so many files open.
  ConnectionLimits connections;
  // For a new connection to come as far as HTTP/2's settings, TLS included.
  absl::Duration handshake_timeout = absl::Seconds(20);
  // A connection without a call is closed after this time; clients make another when they call.
  absl::Duration max_connection_idle = absl::Minutes(30);
  // The same of the health port, where it is less: a probe connects anew, and who watches is not
  // idle.
  absl::Duration max_health_connection_idle = absl::Seconds(30);
  // Of one connection.
  int max_concurrent_streams = 256;
  // Uploads and evaluations of all connections together, of one caller, and of one tenant by token.
  CallLimits calls;
  // The same of calls that only ask, which end as soon as their message has come.
  CallLimits lookups;
  // For the peer to send the next message of a stream, or to read one.
  absl::Duration stall_timeout = absl::Seconds(30);
  // How long what came of a broken upload is kept for a stream that goes on with it.
  absl::Duration upload_resume_timeout = absl::Seconds(120);
  // Of gRPC's own buffers, for all connections together.
  int64_t buffer_bytes = int64_t{1} << 30;
  absl::Duration keepalive_interval = absl::Seconds(60);
  absl::Duration keepalive_timeout = absl::Seconds(20);
  // Clients that ping more often are disconnected.
  absl::Duration min_client_ping_interval = transport::kMinPingInterval;
};

// ModelInfer of the Open Inference Protocol, which has no streams.
struct InferenceOptions {
  // Payload of one message, each way. Above WireLimits::max_chunk_bytes and max_unary_bytes it
  // makes gRPC receive larger messages of every call.
  uint64_t max_payload_bytes = uint64_t{15} << 18;
  // For all messages that are being received (each counts as the largest that may come) and results
  // that are being sent.
  int64_t message_memory_bytes = int64_t{1} << 30;

  // InvalidArgument naming the field.
  absl::Status Validate() const;
};

struct DeviceConfig {
  // See ParseDeviceList (device_list.h).
  std::string spec = "auto";
  // Of each device.
  runtime::DeviceOptions pools;
};

struct ShutdownOptions {
  // Between NOT_SERVING and the refusal of requests: time for load balancers to look elsewhere. For
  // whoever calls Server::Shutdown to wait.
  absl::Duration lame_duck = absl::ZeroDuration();
  // For admitted requests to complete.
  absl::Duration drain_timeout = absl::Seconds(30);
};

struct ServerOptions {
  ListenOptions listen;
  TokenOptions tokens;
  TransportOptions transport;
  // host:port of the metrics page; empty: none.
  std::string metrics_address = "127.0.0.1:9480";
  // host:port of health (and reflection) alone, without TLS, for who asks and has no certificate;
  // empty: none. It is on `listen`, too.
  std::string health_address;
  DeviceConfig device;
  engine::EngineOptions engine;
  codec::WireLimits limits;
  InferenceOptions inference;
  ShutdownOptions shutdown;
  // Between returns of free heap to the system (core/base/allocator_policy.h): 1 to 3 ms of a core
  // under full load, less than 1 in 10,000.
  absl::Duration free_memory_interval = absl::Seconds(30);
  std::string programs_directory;
  // Admits contexts below 128-bit security. For tests.
  bool allow_insecure_contexts = false;

  // InvalidArgument naming the field; FailedPrecondition for plaintext beyond loopback.
  absl::Status Validate() const;

  // `limits`, and no key set larger than every tier and quota admits.
  codec::WireLimits EffectiveLimits() const;
};

// Whether `address` (host:port, unix:path) can be reached from this machine only.
bool IsLoopback(const std::string& address);

}  // namespace cipherd::server
