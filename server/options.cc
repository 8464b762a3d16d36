#include "server/options.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::server {
namespace {

absl::Status Invalid(std::string_view field, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(field), ": ", std::string(what)));
}

absl::Status ValidateListen(const ListenOptions& listen) {
  const TlsOptions& tls = listen.tls;
  if (listen.address.empty()) return Invalid("listen.address", "must not be empty");
  if (tls.certificate_file.empty() != tls.key_file.empty()) {
    return Invalid("listen.tls", "certificate and key belong together");
  }
  if (!tls.client_ca_file.empty() && !tls.is_enabled()) {
    return Invalid("listen.tls.client_ca_file", "needs a server certificate, too");
  }
  if (!IsLoopback(listen.address) && !tls.is_enabled() && !listen.allow_plaintext_remote) {
    return absl::FailedPreconditionError(
        absl::StrCat("listen.address: ", listen.address,
                     " can be reached from other machines, and TLS is off; set a certificate, or "
                     "say --allow-plaintext-remote"));
  }
  return absl::OkStatus();
}

absl::Status ValidateTransport(const TransportOptions& transport) {
  if (transport.max_concurrent_streams < 1) {
    return Invalid("transport.max_concurrent_streams", "expected at least 1");
  }
  if (transport.connections.max_connections < 1 ||
      transport.connections.max_connections_per_peer < 1) {
    return Invalid("transport.connections", "expected at least 1, of all peers and of one");
  }
  for (const auto& [path, limits] : {std::pair("transport.calls", &transport.calls),
                                     std::pair("transport.lookups", &transport.lookups)}) {
    if (limits->max_calls < 1 || limits->max_calls_per_caller < 1 ||
        limits->max_calls_per_tenant < 1) {
      return Invalid(path, "expected at least 1, of all callers, of one, and of one tenant");
    }
  }
  if (transport.stall_timeout <= absl::ZeroDuration() ||
      transport.upload_resume_timeout < absl::ZeroDuration()) {
    return Invalid("transport", "expected a positive stall_timeout and no negative times");
  }
  if (transport.buffer_bytes < (int64_t{16} << 20)) {
    return Invalid("transport.buffer_bytes", "expected at least 16 MiB");
  }
  for (absl::Duration duration :
       {transport.keepalive_interval, transport.keepalive_timeout,
        transport.min_client_ping_interval, transport.handshake_timeout,
        transport.max_connection_idle, transport.max_health_connection_idle}) {
    if (duration < absl::Seconds(1)) {
      return Invalid("transport",
                     "times of keepalive, handshake and idle connections are at least one second");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TokenOptions::Validate() const {
  constexpr absl::Duration kMaxLeeway = absl::Minutes(5);
  constexpr size_t kMaxNameBytes = 255;
  const auto is_name = [](const std::string& text) {
    return text.size() <= kMaxNameBytes &&
           std::all_of(text.begin(), text.end(), absl::ascii_isgraph);
  };
  if (!is_enabled()) {
    // Whoever says either expects callers to be asked for tokens.
    if (issuer.empty() && audience.empty()) return absl::OkStatus();
    return Invalid("tokens.keys", "expected with an issuer or an audience, got none");
  }
  if (issuer.empty() || audience.empty()) {
    return Invalid("tokens", "expected an issuer and an audience with the keys");
  }
  // A tenant's name has both in it, with this between them.
  if (!is_name(issuer) || issuer.find('#') != std::string::npos) {
    return Invalid("tokens.issuer",
                   "expected at most 255 printable characters without space and #");
  }
  if (tenant_claim.empty()) return Invalid("tokens.tenant_claim", "must not be empty");
  if (leeway < absl::ZeroDuration() || leeway > kMaxLeeway) {
    return Invalid("tokens.leeway", "expected 0 to 300 seconds");
  }
  return absl::OkStatus();
}

absl::Status InferenceOptions::Validate() const {
  // Together with what is around the payload it is a length of 31 bits.
  constexpr uint64_t kMaxPayloadBytes = uint64_t{1} << 30;
  if (max_payload_bytes < 4096 || max_payload_bytes > kMaxPayloadBytes) {
    return Invalid("inference.max_payload_bytes", "expected 4 KiB to 1 GiB");
  }
  const uint64_t message_bytes = max_payload_bytes + transport::kMessageOverheadBytes;
  if (message_memory_bytes < static_cast<int64_t>(message_bytes)) {
    return Invalid("inference.message_memory_bytes",
                   absl::StrCat("expected at least one message of ", message_bytes, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status ServerOptions::Validate() const {
  CIPHERD_RETURN_IF_ERROR(ValidateListen(listen));
  CIPHERD_RETURN_IF_ERROR(tokens.Validate());
  CIPHERD_RETURN_IF_ERROR(ValidateTransport(transport));
  CIPHERD_RETURN_IF_ERROR(device.pools.Validate());
  CIPHERD_RETURN_IF_ERROR(engine.Validate());
  CIPHERD_RETURN_IF_ERROR(limits.Validate());
  CIPHERD_RETURN_IF_ERROR(inference.Validate());
  if (shutdown.lame_duck < absl::ZeroDuration() || shutdown.drain_timeout < absl::ZeroDuration()) {
    return Invalid("shutdown", "times must not be negative");
  }
  if (free_memory_interval < absl::Milliseconds(10)) {
    return Invalid("free_memory_interval", "expected at least 10 ms");
  }
  if (programs_directory.empty()) return Invalid("programs", "a directory of programs is needed");
  return absl::OkStatus();
}

codec::WireLimits ServerOptions::EffectiveLimits() const {
  codec::WireLimits effective = limits;
  effective.max_key_set_bytes =
      std::min(effective.max_key_set_bytes, static_cast<uint64_t>(engine.keys.max_set_bytes()));
  return effective;
}

bool IsLoopback(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host == "[::1]" ||
         (absl::StartsWith(host, "127.") &&
          host.find_first_not_of("0123456789.") == std::string::npos);
}

}  // namespace cipherd::server
