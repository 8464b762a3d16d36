#include "server/transport.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "grpcpp/resource_quota.h"
#include "proto/grpc_status/transport.h"

namespace cipherd::server {
namespace {

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("listen.tls: cannot read ", path));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) return absl::InvalidArgumentError(absl::StrCat("listen.tls: empty: ", path));
  return text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const TlsOptions& tls) {
  if (!tls.is_enabled()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  CIPHERD_ASSIGN_OR_RETURN(pair.cert_chain, ReadPem(tls.certificate_file));
  CIPHERD_ASSIGN_OR_RETURN(pair.private_key, ReadPem(tls.key_file));
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back(std::move(pair));
  if (!tls.client_ca_file.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(options.pem_root_certs, ReadPem(tls.client_ca_file));
    options.client_certificate_request = GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }
  return grpc::SslServerCredentials(options);
}

void ApplyHealthTransportOptions(grpc::ServerBuilder& builder) {
  // A message is a name.
  constexpr int kMaxMessageBytes = 4096;
  constexpr size_t kBufferBytes = size_t{32} << 20;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  grpc::ResourceQuota quota("cipherd health");
  quota.Resize(kBufferBytes);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
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
  builder.SetResourceQuota(quota);

  // A second daemon on the same port is an error, not a partner.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, transport.max_concurrent_streams);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, cipherd::transport::kMaxFrameBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             Milliseconds(transport.keepalive_interval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             Milliseconds(transport.keepalive_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(transport.min_client_ping_interval));
}

}  // namespace cipherd::server
