// The details of a failure (the trailer grpc-status-details-bin), as a client reads them.
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  SilenceProtobuf();
  const absl::Status status = FromGrpcStatus(
      grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "refused", std::string(bytes)));
  Require(absl::IsResourceExhausted(status) && status.message() == "refused",
          "details change neither code nor message");
  const auto delay = codec::GetRetryDelay(status);
  Require(!delay.has_value() || *delay >= absl::ZeroDuration(), "nobody waits into the past");
  const absl::Status again = FromGrpcStatus(ToGrpcStatus(status));
  Require(again == status, "what was read is written and read");
  return codec::GetErrorDetail(status).has_value() || delay.has_value();
}

}  // namespace cipherd::fuzz
