#include "server/engine/failure_reason.h"

#include <optional>
#include <utility>

#include "absl/strings/cord.h"

namespace cipherd::engine {
namespace {

constexpr char kPayloadUrl[] = "cipherd.engine.FailureReason";

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

absl::Status WithoutReason(absl::Status status) {
  status.ErasePayload(kPayloadUrl);
  return status;
}

}  // namespace cipherd::engine
