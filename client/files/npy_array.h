// NumPy's array file, as numpy.lib.format describes it: "\x93NUMPY", version, length of the header,
// a Python literal such as {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }, then the
// elements.
//
//   CIPHERD_ASSIGN_OR_RETURN(const NpyArray array, ParseNpyArray(bytes, path));
//   if (array.descr == "<u8") ... array.elements ...
//
// Versions 1 to 3, row-major. InvalidArgument naming path. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cipherd::client {

struct NpyArray {
  // Without its quotes: "<u8".
  std::string descr;
  // No dimension is negative.
  std::vector<int64_t> shape;
  // All that follows the header: a view of the parsed bytes.
  std::string_view elements;
};

absl::StatusOr<NpyArray> ParseNpyArray(std::string_view bytes, std::string_view path);

// Everything before the elements, version 1: a multiple of 64 bytes.
std::string NpyHeader(std::string_view descr, const std::vector<int64_t>& shape);

}  // namespace cipherd::client
