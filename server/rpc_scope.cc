#include "server/rpc_scope.h"

#include <optional>
#include <string>
#include <utility>

#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"
#include "server/engine/failure_reason.h"
#include "server/trace_context.h"

namespace cipherd::server {
namespace {

using engine::FailureReason;

// Where whoever refused cannot tell when there will be room.
constexpr absl::Duration kDefaultRetryDelay = absl::Milliseconds(250);

v1::ErrorReason ToWire(FailureReason reason) {
  switch (reason) {
    case FailureReason::kUnspecified:
      return v1::ERROR_REASON_UNSPECIFIED;
    case FailureReason::kUnknownProgram:
      return v1::ERROR_REASON_UNKNOWN_PROGRAM;
    case FailureReason::kUnknownKeySet:
      return v1::ERROR_REASON_UNKNOWN_KEY_SET;
    case FailureReason::kMissingKey:
      return v1::ERROR_REASON_MISSING_KEY;
    case FailureReason::kWrongContext:
      return v1::ERROR_REASON_WRONG_CONTEXT;
    case FailureReason::kLimitExceeded:
      return v1::ERROR_REASON_LIMIT_EXCEEDED;
    case FailureReason::kOverloaded:
      return v1::ERROR_REASON_OVERLOADED;
    case FailureReason::kUnknownUpload:
      return v1::ERROR_REASON_UNKNOWN_UPLOAD;
    case FailureReason::kStalled:
      return v1::ERROR_REASON_STALLED;
    case FailureReason::kUnavailable:
      return v1::ERROR_REASON_UNAVAILABLE;
  }
  return v1::ERROR_REASON_UNSPECIFIED;
}

// The field of the evaluation header that a reason is about.
std::string_view PathOf(FailureReason reason) {
  switch (reason) {
    case FailureReason::kUnknownProgram:
      return "program";
    case FailureReason::kUnknownKeySet:
    case FailureReason::kMissingKey:
    case FailureReason::kWrongContext:
      return "key_set_id";
    default:
      return "";
  }
}

}  // namespace

absl::Status WithDetailForClients(absl::Status status) {
  const FailureReason reason = engine::ReasonOf(status);
  std::optional<absl::Duration> retry_delay = engine::RetryDelayOf(status);
  if (reason == FailureReason::kOverloaded && !retry_delay.has_value()) {
    retry_delay = kDefaultRetryDelay;
  }
  status = engine::WithoutReason(std::move(status));
  if (retry_delay.has_value()) status = codec::WithRetryInfo(std::move(status), *retry_delay);
  if (codec::GetErrorDetail(status).has_value() || reason == FailureReason::kUnspecified) {
    return status;
  }
  return codec::WithErrorDetail(std::move(status), ToWire(reason), PathOf(reason));
}

RpcScope::RpcScope(std::string_view method, const grpc::ServerContextBase& context,
                   Metrics& metrics, const base::Clock& clock)
    : method_(method), metrics_(metrics), clock_(clock), start_(clock.Now()) {
  log_.Add("method", method);
  if (const std::optional<TraceContext> trace = TraceContext::Of(context)) {
    log_.Add("trace_id", trace->trace_id).Add("span_id", trace->span_id);
  }
}

grpc::Status RpcScope::Close(const absl::Status& status) {
  const double seconds = absl::ToDoubleSeconds(clock_.Now() - start_);
  const absl::Status shown = WithDetailForClients(status);
  metrics_.ObserveRpc(method_, shown, seconds);
  log_.Add("code", absl::StatusCodeToString(status.code())).Add("seconds", seconds);
  if (const auto detail = codec::GetErrorDetail(shown); detail.has_value()) {
    log_.Add("reason", v1::ErrorReason_Name(detail->reason()));
  }
  if (!status.ok()) log_.Add("message", std::string(status.message()));
  log_.Write(!status.ok() || logs_always_ ? spdlog::level::info : spdlog::level::debug);
  return ToGrpcStatus(shown);
}

}  // namespace cipherd::server
