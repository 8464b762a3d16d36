#include "proto/codec/error_detail.h"

#include <algorithm>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cipherd/v1/status_details.pb.h"

namespace cipherd::codec {
namespace {

absl::string_view AsAbsl(std::string_view text) { return {text.data(), text.size()}; }
absl::string_view TypeUrl() { return AsAbsl(kErrorDetailTypeUrl); }

std::string PathAndText(std::string_view path, std::string_view what) {
  return absl::StrCat(std::string(path), ": ", std::string(what));
}

}  // namespace

absl::Status WithErrorDetail(absl::Status status, v1::ErrorReason reason, std::string_view path) {
  if (status.ok()) return status;
  v1::ErrorDetail detail;
  detail.set_reason(reason);
  detail.set_path(std::string(path));
  status.SetPayload(TypeUrl(), absl::Cord(detail.SerializeAsString()));
  return status;
}

std::optional<v1::ErrorDetail> GetErrorDetail(const absl::Status& status) {
  const auto payload = status.GetPayload(TypeUrl());
  if (!payload.has_value()) return std::nullopt;
  v1::ErrorDetail detail;
  if (!detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

absl::Status WithRetryInfo(absl::Status status, absl::Duration delay) {
  if (status.ok()) return status;
  delay = std::clamp(delay, absl::ZeroDuration(), absl::Hours(24));
  v1::RetryInfo info;
  const int64_t seconds = absl::IDivDuration(delay, absl::Seconds(1), &delay);
  info.mutable_retry_delay()->set_seconds(seconds);
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(delay)));
  status.SetPayload(AsAbsl(kRetryInfoTypeUrl), absl::Cord(info.SerializeAsString()));
  return status;
}

std::optional<absl::Duration> GetRetryDelay(const absl::Status& status) {
  const auto payload = status.GetPayload(AsAbsl(kRetryInfoTypeUrl));
  v1::RetryInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload)) ||
      !info.has_retry_delay()) {
    return std::nullopt;
  }
  const absl::Duration delay =
      absl::Seconds(info.retry_delay().seconds()) + absl::Nanoseconds(info.retry_delay().nanos());
  if (delay < absl::ZeroDuration()) return std::nullopt;
  return delay;
}

absl::Status Refuse(v1::ErrorReason reason, std::string_view path, std::string_view what) {
  return WithErrorDetail(absl::InvalidArgumentError(PathAndText(path, what)), reason, path);
}

absl::Status RefuseUnsupported(std::string_view path, std::string_view what) {
  return WithErrorDetail(absl::UnimplementedError(PathAndText(path, what)),
                         v1::ERROR_REASON_UNSUPPORTED, path);
}

}  // namespace cipherd::codec
