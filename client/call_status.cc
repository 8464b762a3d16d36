#include "client/call_status.h"

#include "proto/grpc_status/grpc_status.h"

namespace cipherd::client {

absl::Status CancelledByCaller() { return absl::CancelledError("cancelled by the caller"); }

absl::Status StatusOfCall(const grpc::Status& status, const Cancellation* cancellation) {
  if (status.error_code() == grpc::StatusCode::CANCELLED) {
    if (cancellation != nullptr && cancellation->is_cancelled()) return CancelledByCaller();
    return absl::UnavailableError(
        "the daemon ended the call without an answer; is it shutting down?");
  }
  return FromGrpcStatus(status);
}

}  // namespace cipherd::client
