#include "client/call_status.h"

#include "absl/strings/str_cat.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"

namespace cipherd::client {

absl::Status CancelledByCaller() { return absl::CancelledError("cancelled by the caller"); }

absl::Status StatusOfCall(const grpc::Status& status, const Cancellation* cancellation) {
  if (status.error_code() == grpc::StatusCode::CANCELLED) {
    if (cancellation != nullptr && cancellation->is_cancelled()) return CancelledByCaller();
    return absl::UnavailableError(
        "the daemon ended the call without an answer; is it shutting down?");
  }
  absl::Status converted = FromGrpcStatus(status);
  // The daemon's own words carry details.
  if (absl::IsUnavailable(converted) && !codec::GetErrorDetail(converted).has_value()) {
    return absl::UnavailableError(
        absl::StrCat("the connection to the daemon broke, or cannot be made; is it running? (",
                     status.error_message(), ")"));
  }
  return converted;
}

}  // namespace cipherd::client
