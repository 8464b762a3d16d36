// One coefficient of a fast basis conversion (ring_tables.h has the formula).
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/kernels/arithmetic_tables.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/host_device.h"
#include "core/math/rounded.h"
#include "core/ring/ring_tables.h"

namespace cipherd::kernels {

// Returns y_i = x_i · (Q/q_i)^-1 mod q_i, canonical.
template <class A>
CIPHERD_HD typename A::Residue ConversionDigit(typename A::Residue x,
                                               const ring::BasisConversionTables& tables, int i,
                                               const typename A::Modulus& m) {
  return A::MultiplyFactor(x, A::MakeFactor(tables.hat_inverse[i], tables.hat_inverse_shoup[i], m),
                           m);
}

// Adds y_i / q_i to `quotient`, product and sum rounded each: the same on every device.
template <class A>
CIPHERD_HD void AddToQuotient(typename A::Residue y, const ring::BasisConversionTables& tables,
                              int i, double& quotient) {
  quotient =
      math::RoundedSum(quotient, math::RoundedProduct(A::ToDouble(y), tables.source_inverse[i]));
}

// Returns the nearest integer to a sum of at most 64 numbers in [0, 1), halves upwards.
CIPHERD_HD uint64_t ConversionOverflow(double quotient) {
  return static_cast<uint64_t>(static_cast<int64_t>(quotient + 0.5));
}

// The same as a double.
CIPHERD_HD double ConversionOverflowDouble(double quotient) {
  const double x = math::RoundedSum(quotient, 0.5);
  const double nearest = math::RoundedToInteger(x, 1);
  return nearest > x ? math::RoundedSum(nearest, -1) : nearest;
}

// Returns sum_i y_i · (Q/q_i) - overflow · Q modulo target prime j, canonical. `digit(i)` gives y_i
// as a word.
template <class A, class Digit>
CIPHERD_HD typename A::Residue ConversionTarget(const Digit& digit, uint64_t overflow,
                                                const ring::BasisConversionTables& tables, int j,
                                                const typename A::Modulus& m) {
  typename A::ProductSum sum{};
  const uint64_t* hat = tables.hat + static_cast<int64_t>(j) * tables.source_count;
  for (int i = 0; i < tables.source_count; ++i) A::AddWordsToSum(digit(i), hat[i], sum);
  // Not canonical where Q = 0 mod p_j; the sum does not mind.
  A::AddWordsToSum(overflow, A::ModulusWord(m) - tables.source_product[j], sum);
  return A::ReduceSum(sum, m);
}

// The same where source_count is at most kSources, with constant indices; canonical, or in the
// range where a forward transform may begin.
template <class A, int kSources>
CIPHERD_HD typename A::Residue BoundedConversionTarget(const uint64_t (&digits)[kSources],
                                                       double quotient,
                                                       const ring::BasisConversionTables& tables,
                                                       int j, const typename A::Modulus& m) {
  const uint64_t* hat = tables.hat + static_cast<int64_t>(j) * tables.source_count;
  if constexpr (std::is_same_v<A, math::FmaArithmetic>) {
    const double factor = A::Nearest(A::FromWord(A::ModulusWord(m) - tables.source_product[j]), m);
    if constexpr (kSources == 1) {
      // Q / q_0 = 1. Since q_0 < 2^50 is odd, y_0 / q_0 is at least 2^-51 away from 1/2, and its
      // rounding errs by less: the comparison says what ConversionOverflow does. The sum is below
      // 2^51.
      const double digit = A::FromWord(digits[0]);
      return A::Nearest(quotient >= 0.5 ? math::RoundedSum(digit, factor) : digit, m);
    }
    // Each product is below 5/8 q, since digits are below 2^50, and the overflow is at most
    // kSources: all of it is an integer below 2^52.
    static_assert(kSources <= 3);
    double sum = math::RoundedProduct(ConversionOverflowDouble(quotient), factor);
    CIPHERD_UNROLL
    for (int i = 0; i < kSources; ++i) {
      if (i < tables.source_count) {
        const typename A::Factor w = A::MakeFactor(hat[i], 0, m);
        sum = math::RoundedSum(sum, A::MultiplyLazy(A::FromWord(digits[i]), w, m));
      }
    }
    return A::Nearest(sum, m);
  }
  typename A::ProductSum sum{};
  CIPHERD_UNROLL
  for (int i = 0; i < kSources; ++i) {
    if (i < tables.source_count) A::AddWordsToSum(digits[i], hat[i], sum);
  }
  A::AddWordsToSum(ConversionOverflow(quotient), A::ModulusWord(m) - tables.source_product[j], sum);
  return A::ReduceSum(sum, m);
}

}  // namespace cipherd::kernels
