// What a peer is told about a failure, carried by absl::Status: the reason, and the path of the
// field at fault.
//
//   return Refuse(v1::ERROR_REASON_WRONG_CONTEXT, "inputs[0].context_id",
//                 "expected 1f…, got 2e…");
//   ...
//   if (std::optional<v1::ErrorDetail> detail = GetErrorDetail(status)) ...
//
// Every refusal of the codec carries a detail. The message starts with the path and names what was
// expected and what was found; neither ever holds payload. The mapping of codes to those of gRPC
// belongs to server and client. Thread-safe.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cipherd/v1/evaluation.pb.h"

namespace cipherd::codec {

// Names the payload of an absl::Status that is a serialised v1::ErrorDetail; also the type URL of
// the Any in the status details on the wire.
inline constexpr std::string_view kErrorDetailTypeUrl =
    "type.googleapis.com/cipherd.v1.ErrorDetail";

// `status` with the detail attached, in place of one that it had. An OK status stays as it is.
absl::Status WithErrorDetail(absl::Status status, v1::ErrorReason reason, std::string_view path);

// Nothing where there is no detail, or one that does not parse.
std::optional<v1::ErrorDetail> GetErrorDetail(const absl::Status& status);

// How long to wait before the same call is tried again, as every gRPC library reads it: the payload
// is a serialised google.rpc.RetryInfo under its own type URL. An OK status stays as it is; a delay
// that is not positive becomes 0, one beyond a day a day.
inline constexpr std::string_view kRetryInfoTypeUrl = "type.googleapis.com/google.rpc.RetryInfo";
absl::Status WithRetryInfo(absl::Status status, absl::Duration delay);
// Nothing where there is none, or one that does not parse or is negative.
std::optional<absl::Duration> GetRetryDelay(const absl::Status& status);

// InvalidArgument "path: what" with its detail: what a peer sent is wrong.
absl::Status Refuse(v1::ErrorReason reason, std::string_view path, std::string_view what);

// Unimplemented "path: what", reason UNSUPPORTED: lawful in the wire format, but not in this build.
absl::Status RefuseUnsupported(std::string_view path, std::string_view what);

}  // namespace cipherd::codec
