// The status of a finished call, as applications see it.
#pragma once

#include "absl/status/status.h"
#include "client/cancellation.h"
#include "grpcpp/support/status.h"

namespace cipherd::client {

// Of a call that its caller has ended.
absl::Status CancelledByCaller();

// FromGrpcStatus, but for CANCELLED. Where the caller has cancelled it is CancelledByCaller; else
// the other side ended the call without an answer, as a daemon does with calls that reach it while
// it shuts down. That is Unavailable: another daemon, or this one later, can take the call.
// `cancellation` is the caller's, and may be null.
absl::Status StatusOfCall(const grpc::Status& status, const Cancellation* cancellation = nullptr);

}  // namespace cipherd::client
