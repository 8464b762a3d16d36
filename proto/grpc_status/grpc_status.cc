#include "proto/grpc_status/grpc_status.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "cipherd/v1/status_details.pb.h"

namespace cipherd {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.raw_code());
  const std::string message(status.message());

  v1::StatusDetails details;
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    google::protobuf::Any* any = details.add_details();
    any->set_type_url(std::string(type_url));
    any->set_value(std::string(payload));
  });
  if (details.details().empty()) return grpc::Status(code, message);
  details.set_code(status.raw_code());
  details.set_message(message);
  return grpc::Status(code, message, details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  v1::StatusDetails details;
  if (!details.ParseFromString(status.error_details())) return result;
  for (const google::protobuf::Any& any : details.details()) {
    if (result.GetPayload(any.type_url()).has_value()) continue;
    result.SetPayload(any.type_url(), absl::Cord(any.value()));
  }
  return result;
}

}  // namespace cipherd
