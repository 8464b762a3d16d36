// Numbers of constants: contiguous tensors in host memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/programs/constants.h"
#include "core/value/tensor.h"

namespace cipherd::planning {

// Of a float64 or float32 tensor, row-major.
std::vector<double> NumbersOf(const value::Tensor& constant);
// Of the constant of that name; none for an empty name. Requires that it exists.
std::vector<double> NumbersOf(const programs::Constants& constants, std::string_view name);
// The numbers without a copy where there need be none. The tensor outlives it.
class ConstantNumbers {
 public:
  // As NumbersOf.
  explicit ConstantNumbers(const value::Tensor& constant);
  ConstantNumbers(const programs::Constants& constants, std::string_view name);
  ConstantNumbers(const ConstantNumbers&) = delete;
  ConstantNumbers& operator=(const ConstantNumbers&) = delete;

  std::span<const double> span() const { return span_; }

 private:
  void Hold(const value::Tensor& constant);

  // Of a float32 tensor.
  std::vector<double> converted_;
  std::span<const double> span_;
};

// Of an int64 or int32 tensor, row-major.
std::vector<int64_t> IntegersOf(const value::Tensor& constant);

}  // namespace cipherd::planning
