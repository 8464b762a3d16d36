// The status of a finished call, as applications see it.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace cipherd::client {

// FromGrpcStatus, but for CANCELLED: no call of this library is cancelled while its caller waits,
// so the other side ended it without an answer, as a daemon does with calls that reach it while it
// shuts down. That is Unavailable: another daemon, or this one later, can take the call.
absl::Status StatusOfCall(const grpc::Status& status);

}  // namespace cipherd::client
