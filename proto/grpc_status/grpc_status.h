// absl::Status to grpc::Status and back, details included: used by daemon and client alike.
//
//   return ToGrpcStatus(codec::Refuse(v1::ERROR_REASON_WRONG_CONTEXT, "inputs[0]", "..."));   //
//   daemon absl::Status status = FromGrpcStatus(stub->Evaluate(...)); // client
//   std::optional<v1::ErrorDetail> detail = codec::GetErrorDetail(status);
//
// Codes have the same numbers on both sides. Each payload of an absl::Status travels as one Any of
// the status details (proto/cipherd/v1/status_details.proto) under its type URL. Thread-safe.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace cipherd {

grpc::Status ToGrpcStatus(const absl::Status& status);

// Code and message come from `status` itself. Details that do not parse, or that repeat a type URL,
// are dropped.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace cipherd
