#include "server/transport.h"

#include <algorithm>
#include <optional>
#include <string>

#include "grpc/grpc.h"
#include "grpc/grpc_security.h"
#include "grpcpp/resource_quota.h"
#include "proto/grpc_status/transport.h"

namespace cipherd::server {
namespace {

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

// Certificates that are asked for at each handshake. `files` outlives the server.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadingCredentials(TlsFiles& files) : files_(files) {}

  // Calls are authenticated by their connection.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* const credentials = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            files_.has_client_ca() ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                   : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &ReloadingCredentials::Fetch, &files_));
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* files, grpc_ssl_server_certificate_config** config) {
    const std::optional<TlsMaterial> material = static_cast<TlsFiles*>(files)->TakeNew();
    if (!material.has_value()) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {.private_key = material->private_key.c_str(),
                                             .cert_chain = material->certificate_chain.c_str()};
    // gRPC wants roots in any case; where no client is asked for a certificate it uses none.
    const std::string& roots =
        material->client_ca.empty() ? material->certificate_chain : material->client_ca;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  TlsFiles& files_;
};

// What gRPC does by itself in this version, said here, so that another does it, too.
void ApplyConnectionBounds(const TransportOptions& transport, grpc::ServerBuilder& builder) {
  // Of the metadata of one call. A peer that sends more has that call refused.
  constexpr int kMaxMetadataBytes = 8192;
  // Pings that come too soon after each other, before the connection ends.
  constexpr int kMaxPingStrikes = 2;
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kMaxPingStrikes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(transport.min_client_ping_interval));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             Milliseconds(transport.handshake_timeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             Milliseconds(transport.max_connection_idle));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, transport.max_concurrent_streams);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             Milliseconds(transport.keepalive_interval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             Milliseconds(transport.keepalive_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

// The reflection service has a thread for each of its calls, as long as the peer wants. There are
// this many at most, and further calls are refused.
void BoundReflection(grpc::ServerBuilder& builder, grpc::ResourceQuota& quota) {
  constexpr int kMaxThreads = 16;
  quota.SetMaxThreads(kMaxThreads);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeCredentials(TlsFiles* tls) {
  if (tls == nullptr) return grpc::InsecureServerCredentials();
  return std::make_shared<ReloadingCredentials>(*tls);
}

void ApplyHealthTransportOptions(const TransportOptions& transport, grpc::ServerBuilder& builder) {
  // A message is a name.
  constexpr int kMaxMessageBytes = 4096;
  constexpr size_t kBufferBytes = size_t{32} << 20;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  grpc::ResourceQuota quota("cipherd health");
  quota.Resize(kBufferBytes);
  // gRPC adds reflection to every server of the process.
  BoundReflection(builder, quota);
  builder.SetResourceQuota(quota);
  TransportOptions bounds = transport;
  bounds.max_connection_idle =
      std::min(transport.max_connection_idle, transport.max_health_connection_idle);
  ApplyConnectionBounds(bounds, builder);
}

void ApplyTransportOptions(const ServerOptions& options, grpc::ServerBuilder& builder) {
  const TransportOptions& transport = options.transport;
  builder.SetMaxReceiveMessageSize(cipherd::transport::MaxMessageBytes(
      options.limits.max_chunk_bytes,
      std::max(options.limits.max_unary_bytes, options.inference.max_payload_bytes)));

  // A compressed message grows before gRPC compares it with the limit above, to a thousand times
  // what came. Residues do not get smaller anyway.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);

  // A stream's message is read when the service asks for it. Ahead of that gRPC holds what the
  // stream's window lets come, and it shrinks windows as the quota fills.
  grpc::ResourceQuota quota("cipherd");
  quota.Resize(static_cast<size_t>(transport.buffer_bytes));
  BoundReflection(builder, quota);
  builder.SetResourceQuota(quota);

  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, cipherd::transport::kMaxFrameBytes);
  ApplyConnectionBounds(transport, builder);
}

}  // namespace cipherd::server
