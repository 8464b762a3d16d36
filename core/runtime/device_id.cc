#include "core/runtime/device_id.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace cipherd::runtime {
namespace {

constexpr int kMaxOrdinal = 1023;

absl::Status Malformed(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("device: expected \"cpu\", \"cpu:N\", \"cuda\" or \"cuda:N\", got \"",
                   std::string(text), "\""));
}

}  // namespace

std::string DeviceId::ToString() const {
  return absl::StrCat(kind == Kind::kCpu ? "cpu:" : "cuda:", ordinal);
}

absl::StatusOr<DeviceId> DeviceId::Parse(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  DeviceId id;
  if (name == "cuda") {
    id.kind = Kind::kCuda;
  } else if (name != "cpu") {
    return Malformed(text);
  }
  if (colon == std::string_view::npos) return id;
  const std::string_view digits = text.substr(colon + 1);
  // Only plain digits: SimpleAtoi would take signs and spaces as well.
  const bool is_plain = !digits.empty() && digits.size() <= 4 &&
                        digits.find_first_not_of("0123456789") == std::string_view::npos &&
                        (digits.size() == 1 || digits.front() != '0');
  if (!is_plain || !absl::SimpleAtoi(std::string(digits), &id.ordinal)) return Malformed(text);
  if (id.ordinal > kMaxOrdinal) return Malformed(text);
  return id;
}

}  // namespace cipherd::runtime
