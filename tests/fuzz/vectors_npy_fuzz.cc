// Vectors as a NumPy array.
#include <algorithm>

#include "client/files/vector_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  const auto vectors = client::ParseNpy(bytes, "vectors.npy");
  if (!vectors.ok()) return Refused(vectors.status());
  if (std::any_of(vectors->begin(), vectors->end(), [](const auto& v) { return v.empty(); }))
    return false;
  const auto again = client::ParseCsv(client::ToCsv(*vectors), "again");
  Require(again.ok() && again->size() == vectors->size(), "what was read is written and read");
  return true;
}

}  // namespace cipherd::fuzz
