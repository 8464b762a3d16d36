#include "client/files/npy_array.h"

#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kHeaderAlignment = 64;

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

// Dimensions of "2, 3" or "3,".
absl::StatusOr<std::vector<int64_t>> ParseShape(const std::string& text, std::string_view path) {
  std::vector<int64_t> shape;
  for (absl::string_view field : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    int64_t dimension = 0;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(field), &dimension) || dimension < 0) {
      return Refused(path, "has a broken shape");
    }
    shape.push_back(dimension);
  }
  return shape;
}

}  // namespace

absl::StatusOr<NpyArray> ParseNpyArray(std::string_view bytes, std::string_view path) {
  if (bytes.size() < 12 || !bytes.starts_with(kMagic)) return Refused(path, "is not a .npy file");
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

  const std::optional<std::string> descr = FieldOf(header, "descr");
  const std::optional<std::string> order = FieldOf(header, "fortran_order");
  const std::optional<std::string> shape = FieldOf(header, "shape");
  if (!descr || descr->size() < 2 || !order || !shape) return Refused(path, "has a broken header");
  if (*order != "False") {
    return Refused(path, "expected row-major order (numpy.ascontiguousarray makes it)");
  }
  NpyArray array;
  array.descr = descr->substr(1, descr->size() - 2);
  CIPHERD_ASSIGN_OR_RETURN(array.shape, ParseShape(*shape, path));
  array.elements = bytes.substr(header_begin + header_bytes);
  return array;
}

std::string NpyHeader(std::string_view descr, const std::vector<int64_t>& shape) {
  std::string literal =
      absl::StrCat("{'descr': '", std::string(descr), "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(shape, ", "), shape.size() == 1 ? "," : "", "), }");
  const size_t fixed_bytes = kMagic.size() + 2 + 2 + 1;
  const size_t unaligned = (fixed_bytes + literal.size()) % kHeaderAlignment;
  if (unaligned != 0) literal.append(kHeaderAlignment - unaligned, ' ');
  literal.push_back('\n');
  std::string header(kMagic);
  header.append({'\1', '\0', static_cast<char>(literal.size() & 0xff),
                 static_cast<char>(literal.size() >> 8)});
  return header + literal;
}

}  // namespace cipherd::client
