#include "server/engine/shown_program.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace cipherd::engine {

std::string ShownName(std::string_view name) {
  constexpr size_t kMostShown = 64;
  if (name.size() > kMostShown) return absl::StrCat("(a name of ", name.size(), " bytes)");
  return absl::CEscape(absl::string_view(name.data(), name.size()));
}

std::string ShownVersion(int64_t version) {
  return version == 0 ? "" : absl::StrCat(" version ", version);
}

}  // namespace cipherd::engine
