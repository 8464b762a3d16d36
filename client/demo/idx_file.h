// Reads the IDX files of MNIST and its relatives, compressed by gzip or not.
//
// Two zero bytes, a type (8: unsigned byte), the number of dimensions, each dimension as a
// big-endian 32-bit number, then the elements in row-major order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cipherd::client {

struct IdxArray {
  // The first is the number of items.
  std::vector<int64_t> shape;
  std::vector<uint8_t> elements;

  int64_t item_count() const { return shape[0]; }
  // Elements of one item.
  int64_t item_bytes() const { return static_cast<int64_t>(elements.size()) / shape[0]; }
};

// The first `max_items` items. NotFound where there is no such file; InvalidArgument, naming the
// path, where it is none of unsigned bytes, has no items, or ends early.
absl::StatusOr<IdxArray> ReadIdxFile(const std::string& path, int64_t max_items);

}  // namespace cipherd::client
