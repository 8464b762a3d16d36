#include "server/engine/failure_reason.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace cipherd::engine {
namespace {

constexpr char kPayloadUrl[] = "cipherd.engine.FailureReason";
constexpr char kRetryDelayUrl[] = "cipherd.engine.RetryDelay";

}  // namespace

absl::Status WithReason(absl::Status status, FailureReason reason) {
  if (!status.ok()) {
    const char byte = static_cast<char>(reason);
    status.SetPayload(kPayloadUrl, absl::Cord(absl::string_view(&byte, 1)));
  }
  return status;
}

FailureReason ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value() || payload->size() != 1) return FailureReason::kUnspecified;
  return static_cast<FailureReason>(static_cast<uint8_t>((*payload)[0]));
}

absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  if (!status.ok()) {
    status.SetPayload(kRetryDelayUrl, absl::Cord(absl::StrCat(absl::ToInt64Nanoseconds(delay))));
  }
  return status;
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryDelayUrl);
  int64_t nanoseconds = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &nanoseconds)) {
    return std::nullopt;
  }
  return absl::Nanoseconds(nanoseconds);
}

absl::Status WithoutReason(absl::Status status) {
  status.ErasePayload(kPayloadUrl);
  status.ErasePayload(kRetryDelayUrl);
  return status;
}

}  // namespace cipherd::engine
