#include "client/call_status.h"

#include "proto/grpc_status/grpc_status.h"

namespace cipherd::client {

absl::Status StatusOfCall(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::CANCELLED) {
    return absl::UnavailableError(
        "the daemon ended the call without an answer; is it shutting down?");
  }
  return FromGrpcStatus(status);
}

}  // namespace cipherd::client
