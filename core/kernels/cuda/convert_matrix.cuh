// Basis conversion of many source limbs as a product of matrices of doubles, on the tensor cores.
//
// With y_i = Y1 · 2^25 + Y0 and (Q/q_i) mod p_j = W1 · 2^25 + W0, centred,
//   sum_i y_i · (Q/q_i) = S1 · 2^50 + S2 · 2^25 + S0,
//   S1 = sum Y1·W1,  S2 = sum Y1·W0 + Y0·W1,  S0 = sum Y0·W0:
// sums of integers which stay below 2^53, so that they are exact in whatever order they are added.
// Y1 <= 2^25 and |Y0|, |W1|, |W0| <= 2^24, since y_i, p_j < 2^50: for kMaxMatrixSources = 10 terms
// |S1| <= 10 · 2^49, |S2| <= 10 · (2^49 + 2^48) < 2^52.91, |S0| <= 10 · 2^48, and the multiple
// v <= 10 of -Q adds less than 2^28 to S2 and S0.
#pragma once

#include <cstdint>

#include "core/kernels/basis_conversion_body.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/rounded.h"

namespace cipherd::kernels::cuda {

inline constexpr int kMaxMatrixSources = 10;

// An integer as high · 2^25 + low, |low| <= 2^24.
struct SplitInteger {
  double high;
  double low;
};

// Requires an integer |x| < 2^51.
__device__ inline SplitInteger Split(double x) {
  const double high = math::RoundedToInteger(x, 0x1p-25);
  return {high, math::FusedMultiplyAdd(-high, 0x1p25, x)};
}

// What the sums modulo one target prime are put together with.
struct TargetConstants {
  using A = math::FmaArithmetic;

  A::Modulus m;
  A::Factor high;         // 2^50
  A::Factor middle;       // 2^25
  SplitInteger overflow;  // -Q

  // `word` is -Q mod q, or q.
  __device__ static TargetConstants Make(const A::Modulus& m, uint64_t word) {
    TargetConstants result;
    result.m = m;
    result.high = A::FactorOfRoot(A::Nearest(0x1p50, m), m);
    result.middle = A::FactorOfRoot(A::Nearest(0x1p25, m), m);
    result.overflow = Split(A::Nearest(A::FromWord(word), m));
    return result;
  }

  // Returns S1 · 2^50 + S2 · 2^25 + S0 - v · Q modulo q, of magnitude q/2 or hardly more.
  __device__ double Combine(double s1, double s2, double s0, double v) const {
    s2 = math::FusedMultiplyAdd(v, overflow.high, s2);
    s0 = math::FusedMultiplyAdd(v, overflow.low, s0);
    const double upper = A::MultiplyLazy(A::Nearest(s1, m), high, m);
    const double centre = A::MultiplyLazy(A::Nearest(s2, m), middle, m);
    return A::Nearest(math::RoundedSum(math::RoundedSum(s0, upper), centre), m);
  }
};

// c += a · b for matrices of 8 x 4 and 4 x 8: lane l has a[l / 4][l % 4], b[l % 4][l / 4] and
// c[l / 4][2 (l % 4)], c[l / 4][2 (l % 4) + 1].
__device__ inline void MultiplyAccumulate(double (&c)[2], double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(c[0]), "+d"(c[1])
               : "d"(a), "d"(b));
}

}  // namespace cipherd::kernels::cuda
