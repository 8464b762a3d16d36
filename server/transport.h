// How the gRPC server is set up: credentials, and the bounds of the transport.
#pragma once

#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "server/options.h"
#include "server/tls_files.h"

namespace cipherd::server {

// Plaintext for null. Else TLS, with client certificates required where `tls` has a CA for them;
// `tls` outlives the server, and who connects gets what its files hold by then.
std::shared_ptr<grpc::ServerCredentials> MakeCredentials(TlsFiles* tls);

// Message sizes, streams, memory, keepalive.
void ApplyTransportOptions(const ServerOptions& options, grpc::ServerBuilder& builder);

// The same for a port that has the health service alone.
void ApplyHealthTransportOptions(const TransportOptions& transport, grpc::ServerBuilder& builder);

}  // namespace cipherd::server
