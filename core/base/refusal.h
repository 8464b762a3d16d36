// Words of refusals: what is wrong first, with the place in front of it.
//
//   return At("program 'p', operation 'z'", Refuse("scale: expected at least 1, got ", scale));
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace cipherd::base {

// InvalidArgument, its message the parts as absl::StrCat takes them.
template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// "operation 'z2'"; what a name must not have is escaped.
inline std::string Named(std::string_view kind, const std::string& name) {
  return absl::StrCat(std::string(kind), " '", absl::CHexEscape(name), "'");
}

// `status` with where it happened in front.
inline absl::Status At(const std::string& place, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(place, ": ", std::string(status.message())));
}

}  // namespace cipherd::base
