#include "core/programs/names.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace cipherd::programs {
namespace {

bool IsProgramNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

absl::Status CheckName(std::string_view name, bool (*is_lawful)(char), const char* characters) {
  if (!name.empty() && name.size() <= kMaxEdgeNameBytes &&
      std::all_of(name.begin(), name.end(), is_lawful)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("name: expected 1 to ", kMaxEdgeNameBytes, " of ", characters));
}

}  // namespace

bool IsEdgeNameCharacter(char c) {
  return IsProgramNameCharacter(c) || (c >= 'A' && c <= 'Z') || c == '.';
}

absl::Status CheckProgramName(std::string_view name) {
  return CheckName(name, IsProgramNameCharacter, "a-z 0-9 _ -");
}

absl::Status CheckEdgeName(std::string_view name) {
  return CheckName(name, IsEdgeNameCharacter, "A-Z . a-z 0-9 _ -");
}

}  // namespace cipherd::programs
