// Numbers of constants: contiguous tensors in host memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/programs/constants.h"
#include "core/value/tensor.h"

namespace cipherd::planning {

// Of a float64 or float32 tensor, row-major.
std::vector<double> NumbersOf(const value::Tensor& constant);
// Of the constant of that name; none for an empty name. Requires that it exists.
std::vector<double> NumbersOf(const programs::Constants& constants, std::string_view name);
// Of an int64 or int32 tensor, row-major.
std::vector<int64_t> IntegersOf(const value::Tensor& constant);

}  // namespace cipherd::planning
