#include "proto/codec/error_detail.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace cipherd::codec {
namespace {

absl::string_view TypeUrl() { return {kErrorDetailTypeUrl.data(), kErrorDetailTypeUrl.size()}; }

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

absl::Status Refuse(v1::ErrorReason reason, std::string_view path, std::string_view what) {
  return WithErrorDetail(absl::InvalidArgumentError(PathAndText(path, what)), reason, path);
}

absl::Status RefuseUnsupported(std::string_view path, std::string_view what) {
  return WithErrorDetail(absl::UnimplementedError(PathAndText(path, what)),
                         v1::ERROR_REASON_UNSUPPORTED, path);
}

}  // namespace cipherd::codec
