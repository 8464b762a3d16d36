// One coefficient of a fast basis conversion (ring_tables.h has the formula).
#pragma once

#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/math/host_device.h"
#include "core/ring/ring_tables.h"

namespace cipherd::kernels {

// Returns a · b + sum, each operation rounded by itself: never contracted into one fused operation,
// so that every device rounds the same. (Host code is built with -ffp-contract=off.)
CIPHERD_HD double MultiplyThenAdd(double a, double b, double sum) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(sum, __dmul_rn(a, b));
#else
  return sum + a * b;
#endif
}

// Returns y_i = x_i · (Q/q_i)^-1 mod q_i, and adds y_i / q_i to `quotient`.
template <class A>
CIPHERD_HD typename A::Residue ConversionDigit(uint64_t x,
                                               const ring::BasisConversionTables& tables, int i,
                                               const typename A::Modulus& m, double& quotient) {
  const auto hat_inverse = A::MakeFactor(tables.hat_inverse[i], tables.hat_inverse_shoup[i], m);
  const typename A::Residue y = A::MultiplyFactor(A::FromWord(x), hat_inverse, m);
  quotient = MultiplyThenAdd(A::ToDouble(y), tables.source_inverse[i], quotient);
  return y;
}

// Returns the nearest integer to a sum of at most 64 numbers in [0, 1), halves upwards.
CIPHERD_HD uint64_t ConversionOverflow(double quotient) {
  return static_cast<uint64_t>(static_cast<int64_t>(quotient + 0.5));
}

// Returns sum_i y_i · (Q/q_i) - overflow · Q modulo target prime j, as a word. `digit(i)` gives
// y_i.
template <class A, class Digit>
CIPHERD_HD uint64_t ConversionTarget(const Digit& digit, uint64_t overflow,
                                     const ring::BasisConversionTables& tables, int j,
                                     const typename A::Modulus& m) {
  typename A::ProductSum sum{};
  const uint64_t* hat = tables.hat + static_cast<int64_t>(j) * tables.source_count;
  for (int i = 0; i < tables.source_count; ++i) A::AddToSum(digit(i), A::FromWord(hat[i]), sum);
  // Not canonical where Q = 0 mod p_j; the sum does not mind.
  A::AddToSum(A::FromWord(overflow), A::FromWord(m.q - tables.source_product[j]), sum);
  return A::ToWord(A::ReduceSum(sum, m));
}

}  // namespace cipherd::kernels
