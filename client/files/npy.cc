// ParseNpy: vectors in NumPy's array file.
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/files/npy_array.h"
#include "client/files/vector_file.h"
#include "core/base/checked_math.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

absl::Status Refused(std::string_view path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("'", std::string(path), "': ", what));
}

int64_t ElementBytes(const std::string& descr) {
  if (descr == "<f8") return 8;
  if (descr == "<f4") return 4;
  if (descr == "|u1") return 1;
  return 0;
}

template <typename T>
std::vector<double> ReadRow(const char* bytes, int64_t count) {
  std::vector<double> row(count);
  for (int64_t j = 0; j < count; ++j) {
    T element;
    std::memcpy(&element, bytes + j * sizeof(T), sizeof(T));
    row[j] = static_cast<double>(element);
  }
  return row;
}

}  // namespace

absl::StatusOr<Vectors> ParseNpy(std::string_view bytes, std::string_view path) {
  CIPHERD_ASSIGN_OR_RETURN(const NpyArray array, ParseNpyArray(bytes, path));
  const std::string_view payload = array.elements;
  const int64_t element_bytes = ElementBytes(array.descr);
  if (element_bytes == 0) {
    return Refused(path,
                   absl::StrCat("dtype: expected '<f8', '<f4' or '|u1', got '", array.descr, "'"));
  }
  std::vector<int64_t> shape = array.shape;
  if (shape.empty() || shape.size() > 2) {
    return Refused(path, absl::StrCat("expected one or two dimensions, got ", shape.size()));
  }
  if (shape.size() == 1) shape.insert(shape.begin(), 1);
  const int64_t dimensions[] = {shape[0], shape[1], element_bytes};
  const std::optional<int64_t> expected_bytes = base::CheckedElementCount(dimensions);
  if (!expected_bytes || static_cast<uint64_t>(*expected_bytes) != payload.size()) {
    return Refused(path, absl::StrCat("expected ", shape[0], " x ", shape[1], " elements of ",
                                      element_bytes, " bytes, got ", payload.size(), " bytes"));
  }
  if (*expected_bytes == 0) return Refused(path, "expected at least one number, got none");
  Vectors vectors;
  for (int64_t i = 0; i < shape[0]; ++i) {
    const char* row = payload.data() + i * shape[1] * element_bytes;
    vectors.push_back(element_bytes == 8   ? ReadRow<double>(row, shape[1])
                      : element_bytes == 4 ? ReadRow<float>(row, shape[1])
                                           : ReadRow<uint8_t>(row, shape[1]));
  }
  return vectors;
}

}  // namespace cipherd::client
