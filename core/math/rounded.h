// Operations on doubles that round exactly once, on the host and on CUDA alike: never contracted
// into another one, never taken apart. (Host code that uses them is built with -ffp-contract=off.)
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/math/host_device.h"

namespace cipherd::math {

// Returns a · b rounded.
CIPHERD_HD double RoundedProduct(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

// Returns a + b rounded.
CIPHERD_HD double RoundedSum(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}

// Returns a · b + c rounded, the product being exact.
CIPHERD_HD double FusedMultiplyAdd(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#else
  return std::fma(a, b, c);
#endif
}

// 1.5 · 2^52: a double of this binade has units of 1, so that adding a number of magnitude up to
// 2^51 to it rounds that to an integer, in its low bits.
inline constexpr double kRoundToInteger = 0x1.8p52;

// Requires |a · b + the rounding error of b| <= 2^51. Returns the integer nearest to a · b, which
// is rounded nowhere else.
CIPHERD_HD double RoundedToInteger(double a, double b) {
  return RoundedSum(FusedMultiplyAdd(a, b, kRoundToInteger), -kRoundToInteger);
}

// Requires word < 2^52. Returns it.
CIPHERD_HD double DoubleOfWord(uint64_t word) {
  constexpr double kUnits = 0x1p52;
  return RoundedSum(std::bit_cast<double>(word | std::bit_cast<uint64_t>(kUnits)), -kUnits);
}

// Requires x an integer in [0, 2^52). Returns it.
CIPHERD_HD uint64_t WordOfDouble(double x) {
  constexpr double kUnits = 0x1p52;
  return std::bit_cast<uint64_t>(RoundedSum(x, kUnits)) ^ std::bit_cast<uint64_t>(kUnits);
}

// Requires x an integer, |x| <= 2^51. Returns it.
CIPHERD_HD int64_t IntegerOfDouble(double x) {
  return static_cast<int64_t>(std::bit_cast<uint64_t>(RoundedSum(x, kRoundToInteger)) -
                              std::bit_cast<uint64_t>(kRoundToInteger));
}

}  // namespace cipherd::math
