// What is asked of vectors, however they were written.
#pragma once

#include <algorithm>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/files/vector_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace cipherd::fuzz {

using VectorReader = absl::StatusOr<client::Vectors> (*)(std::string_view bytes,
                                                         std::string_view path);

inline bool TakeVectors(VectorReader read, std::string_view bytes) {
  const auto vectors = read(bytes, "vectors");
  if (!vectors.ok()) return Refused(vectors.status());
  // Lines of no numbers are left out of text.
  if (std::any_of(vectors->begin(), vectors->end(), [](const auto& v) { return v.empty(); })) {
    return false;
  }
  const auto again = client::ParseCsv(client::ToCsv(*vectors), "again");
  Require(again.ok() && again->size() == vectors->size(), "what was read is written and read");
  return true;
}

}  // namespace cipherd::fuzz
