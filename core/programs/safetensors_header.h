// The JSON header of a safetensors file as checked data. Internal to safetensors.cc and its test.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/value/tensor.h"

namespace cipherd::programs::internal {

struct SafetensorsEntry {
  std::string name;
  value::DType dtype;
  std::vector<int64_t> shape;
  // In the data, which begins behind the header.
  int64_t begin;
  int64_t end;
};

// Entries in the order of their data. `data_bytes` is what the file holds behind the header.
// InvalidArgument, beginning with the tensor's name where there is one.
absl::StatusOr<std::vector<SafetensorsEntry>> ParseSafetensorsHeader(std::string_view header,
                                                                     int64_t data_bytes);

}  // namespace cipherd::programs::internal
