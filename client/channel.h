// A gRPC channel to the daemon: credentials, message sizes and keepalive.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/client_options.h"
#include "grpcpp/channel.h"

namespace cipherd::client {

// Connects lazily: nothing is sent. Errors of ClientOptions::Validate; NotFound or InvalidArgument
// naming a PEM file that cannot be read.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ClientOptions& options);

}  // namespace cipherd::client
