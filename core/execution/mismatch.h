// The one form in which signatures name a difference: `source[0].depth: expected 3, got 2`.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cipherd::execution {

inline absl::Status Mismatch(std::string_view path, std::string_view field,
                             std::string_view expected, std::string_view actual) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(path), std::string(field),
                                                 ": expected ", std::string(expected), ", got ",
                                                 std::string(actual)));
}

}  // namespace cipherd::execution
