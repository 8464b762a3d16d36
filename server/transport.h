// How the gRPC server is set up: addresses, credentials, and the bounds of the transport.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "server/options.h"

namespace cipherd::server {

// Plaintext, TLS, or TLS with client certificates required. NotFound or InvalidArgument naming the
// file that cannot be read or is empty.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const TlsOptions& tls);

// Message sizes, streams, memory, keepalive.
void ApplyTransportOptions(const ServerOptions& options, grpc::ServerBuilder& builder);

// The same for a port that has the health service alone.
void ApplyHealthTransportOptions(grpc::ServerBuilder& builder);

}  // namespace cipherd::server
