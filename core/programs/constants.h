// Named arrays that a program computes with: the content of its safetensors file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/programs/program_spec.h"
#include "core/value/tensor.h"

namespace cipherd::programs {

// Contiguous tensors in host memory by name: float64, float32, int64 or int32.
using Constants = std::map<std::string, value::Tensor, std::less<>>;

// Number of slots that `length` numbers fill, or InvalidArgument, saying why, where an expansion of
// them does not fit: no numbers, a repeat below 1, more than `slot_count` slots, or a tile whose
// length does not divide it.
absl::StatusOr<int64_t> ExpandedLength(int64_t length, const SlotExpansion& expansion,
                                       int64_t slot_count);

// The `slot_count` slots that row `row` of a float64 or float32 constant [length] (one row) or
// [rows, length] stands for. Requires ExpandedLength to accept it.
std::vector<double> ExpandRow(const value::Tensor& constant, int64_t row,
                              const SlotExpansion& expansion, int64_t slot_count);

}  // namespace cipherd::programs
