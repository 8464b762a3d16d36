#include "client/channel.h"

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/callback_threads.h"
#include "core/base/status_macros.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/grpc_status/transport.h"

namespace cipherd::client {
namespace {

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::NotFoundError(absl::StrCat("cannot read the PEM file '", path, "'"));
  }
  if (text.str().find("-----BEGIN") == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a PEM file"));
  }
  return text.str();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const ClientOptions& options) {
  if (!options.tls.has_value()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  if (!options.tls->ca_file.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadPem(options.tls->ca_file));
  }
  if (!options.tls->certificate_file.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(ssl.pem_cert_chain, ReadPem(options.tls->certificate_file));
    CIPHERD_ASSIGN_OR_RETURN(ssl.pem_private_key, ReadPem(options.tls->private_key_file));
  }
  return grpc::SslCredentials(ssl);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ClientOptions& options) {
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  KeepCallbackThreads();
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<grpc::ChannelCredentials> credentials,
                           MakeCredentials(options));

  const int max_message_bytes =
      transport::MaxMessageBytes(options.limits.max_chunk_bytes, options.limits.max_unary_bytes);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(max_message_bytes);
  arguments.SetMaxSendMessageSize(max_message_bytes);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, transport::kMaxFrameBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(transport::kKeepaliveInterval)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(transport::kKeepaliveTimeout)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  // Long uploads ping too, whatever lies between the data frames.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetUserAgentPrefix("cipherd-client");
  if (options.tls.has_value() && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  return grpc::CreateCustomChannel(options.target, credentials, arguments);
}

}  // namespace cipherd::client
