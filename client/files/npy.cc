// ParseNpy: NumPy's array file, as numpy.lib.format describes it: "\x93NUMPY", version, length of
// the header, a Python literal such as {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), },
// then the elements.
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/files/vector_file.h"
#include "core/base/checked_math.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

absl::Status Refused(std::string_view path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("'", std::string(path), "': ", what));
}

// What stands after `'key':`; of a tuple, what stands in the parentheses.
std::optional<std::string> FieldOf(const std::string& header, const std::string& key) {
  const size_t name = header.find(absl::StrCat("'", key, "':"));
  if (name == std::string::npos) return std::nullopt;
  size_t begin = header.find_first_not_of(' ', name + key.size() + 3);
  if (begin == std::string::npos) return std::nullopt;
  const bool is_tuple = header[begin] == '(';
  const size_t end = header.find(is_tuple ? ')' : ',', begin);
  if (end == std::string::npos) return std::nullopt;
  if (is_tuple) ++begin;
  return header.substr(begin, end - begin);
}

// Dimensions of "2, 3" or "3,", as rows and columns.
absl::StatusOr<std::vector<int64_t>> ParseShape(const std::string& text, std::string_view path) {
  std::vector<int64_t> shape;
  for (absl::string_view field : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    int64_t dimension = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(field), &dimension) || dimension < 0) {
      return Refused(path, "has a broken shape");
    }
    shape.push_back(dimension);
  }
  if (shape.empty() || shape.size() > 2) {
    return Refused(path, absl::StrCat("expected one or two dimensions, got ", shape.size()));
  }
  if (shape.size() == 1) shape.insert(shape.begin(), 1);
  return shape;
}

int64_t ElementBytes(const std::string& descr) {
  if (descr == "'<f8'") return 8;
  if (descr == "'<f4'") return 4;
  if (descr == "'|u1'") return 1;
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
  if (bytes.size() < 12 || bytes.substr(0, 6) != "\x93NUMPY")
    return Refused(path, "is not a .npy file");
  const int version = static_cast<uint8_t>(bytes[6]);
  if (version < 1 || version > 3) {
    return Refused(path, absl::StrCat("version: expected 1 to 3, got ", version));
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t header_bytes = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    header_bytes |= size_t{static_cast<uint8_t>(bytes[8 + i])} << (8 * i);
  }
  const size_t header_begin = 8 + length_bytes;
  if (header_bytes > bytes.size() - header_begin) return Refused(path, "ends within its header");
  const std::string header(bytes.substr(header_begin, header_bytes));
  const std::string_view payload = bytes.substr(header_begin + header_bytes);

  const std::optional<std::string> descr = FieldOf(header, "descr");
  const std::optional<std::string> order = FieldOf(header, "fortran_order");
  const std::optional<std::string> shape_text = FieldOf(header, "shape");
  if (!descr || !order || !shape_text) return Refused(path, "has a broken header");
  if (*order != "False")
    return Refused(path, "expected row-major order (numpy.ascontiguousarray makes it)");
  const int64_t element_bytes = ElementBytes(*descr);
  if (element_bytes == 0) {
    return Refused(path, absl::StrCat("dtype: expected '<f8', '<f4' or '|u1', got ", *descr));
  }

  CIPHERD_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, ParseShape(*shape_text, path));
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
