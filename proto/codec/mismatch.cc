#include "proto/codec/mismatch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cipherd::codec::internal {

absl::Status Mismatch(std::string_view path, std::string_view field, std::string_view expected,
                      std::string_view actual, v1::ErrorReason reason) {
  return Refuse(reason, absl::StrCat(std::string(path), std::string(field)),
                absl::StrCat("expected ", std::string(expected), ", got ", std::string(actual)));
}

absl::Status AboveLimit(std::string_view path, std::string_view field, uint64_t limit,
                        uint64_t actual) {
  return Mismatch(path, field, absl::StrCat("at most ", limit), absl::StrCat(actual),
                  v1::ERROR_REASON_LIMIT_EXCEEDED);
}

absl::Status WithPathOf(const absl::Status& status, v1::ErrorReason reason, std::string_view path) {
  if (status.ok()) return status;
  const std::string message(status.message());
  const size_t end = message.find(": expected ");
  if (end == std::string::npos) {
    return WithErrorDetail(
        absl::Status(status.code(), absl::StrCat(std::string(path), ": ", message)), reason, path);
  }
  return WithErrorDetail(status, reason, std::string_view(message).substr(0, end));
}

std::string ListOf(const std::vector<int64_t>& numbers) {
  constexpr size_t kShown = 64;
  const auto end = numbers.begin() + static_cast<ptrdiff_t>(std::min(numbers.size(), kShown));
  return absl::StrCat("[", absl::StrJoin(numbers.begin(), end, ", "),
                      numbers.size() > kShown ? ", …]" : "]");
}

absl::Status CheckName(std::string_view name, int max_bytes, std::string_view path) {
  if (name.empty()) return Mismatch(path, "", "a name", "none");
  if (name.size() > static_cast<size_t>(max_bytes)) {
    return Mismatch(path, "", absl::StrCat("a name of at most ", max_bytes, " bytes"),
                    absl::StrCat(name.size()), v1::ERROR_REASON_LIMIT_EXCEEDED);
  }
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c < 0x20 || c > 0x7e || c == '\'' || c == '"' || c == '\\') {
      return Mismatch(path, "", "a name of printable ASCII without quotes and backslashes",
                      absl::StrCat("another character at position ", i));
    }
  }
  return absl::OkStatus();
}

}  // namespace cipherd::codec::internal
