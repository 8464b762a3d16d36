// Basis conversion of many source limbs as a product of matrices of doubles, on the tensor cores.
//
// With y_i = Y1 · 2^25 + Y0, and with H = (Q/q_i) · 2^25 mod p_j and L = (Q/q_i) mod p_j, centred,
// as H1 · 2^25 + H0 and L1 · 2^25 + L0,
//   sum_i y_i · (Q/q_i) = sum_i Y1 · H + Y0 · L = T1 · 2^25 + T0 modulo p_j,
//   T1 = sum Y1 · H1 + Y0 · L1,   T0 = sum Y1 · H0 + Y0 · L0:
// sums of integers which stay below 2^53, so that they are exact in whatever order they are added.
// Y1 <= 2^25 and |Y0|, |H1|, |H0|, |L1|, |L0| <= 2^24, since y_i, p_j < 2^50: of
// kMaxMatrixSources = 10 terms the sums are at most 10 · (2^49 + 2^48) < 2^52.91, and the multiple
// v <= 10 of -Q adds less than 2^28 to either.
#pragma once

#include <cstdint>

#include "core/math/fma_arithmetic.h"
#include "core/math/rounded.h"

namespace cipherd::kernels::cuda {

inline constexpr int kMaxMatrixSources = 10;
// Source limbs of one step of a product; steps are taken two at a time where there are two.
inline constexpr int kStepSources = 4;
// Target limbs of one product.
inline constexpr int kMatrixTargets = 8;

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
  A::Factor radix;        // 2^25
  SplitInteger overflow;  // -Q

  // `word` is -Q mod q, or q.
  __device__ static TargetConstants Make(const A::Modulus& m, uint64_t word) {
    return {m, A::FactorOfRoot(A::Nearest(0x1p25, m), m), Split(A::Nearest(A::FromWord(word), m))};
  }

  // Returns T1 · 2^25 + T0 - v · Q modulo q, of magnitude q/2 or hardly more, for sums of at most
  // kSources terms. T1 may be past the range of MultiplyLazy's operands: H1 and L1 are at most
  // q · 2^-26 + 1/2 and the factor is 2^25 or below 2^25, so that the quotient T1 · 2^25 / q is
  // below 2^30, the product below 2^78, and the result at most (1/2 + 2^-20) · q.
  template <int kSources>
  __device__ double Combine(double t1, double t0, double v) const {
    t1 = math::FusedMultiplyAdd(v, overflow.high, t1);
    t0 = math::FusedMultiplyAdd(v, overflow.low, t0);
    // |t0| + q <= 2^53 for up to eight terms.
    if constexpr (kSources > 8) t0 = A::Nearest(t0, m);
    return A::Nearest(math::RoundedSum(t0, A::MultiplyLazy(t1, radix, m)), m);
  }
};

// The words of a matrix product that a lane of a warp holds, kSteps · kStepSources sources deep
// (PTX ISA, mma.m16n8k4 and m16n8k8 of .f64). Of digits, coefficients lane / 4 and lane / 4 + 8 by
// sources 4s + lane % 4; of factors, the same sources by target lane / 4.
template <int kSteps>
struct DigitFragment {
  double word[kSteps][2];
};
template <int kSteps>
struct FactorFragment {
  double word[kSteps];
};
// Coefficients lane / 4 and lane / 4 + 8, in this order, by targets 2 (lane % 4) and
// 2 (lane % 4) + 1.
struct SumFragment {
  double word[2][2];
};

// sum += digits · factors. Every lane of the warp takes part.
template <int kSteps>
__device__ inline void MultiplyAccumulate(SumFragment& sum, const DigitFragment<kSteps>& digits,
                                          const FactorFragment<kSteps>& factors) {
  CIPHERD_UNROLL
  for (int s = 0; s + 1 < kSteps; s += 2) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+d"(sum.word[0][0]), "+d"(sum.word[0][1]), "+d"(sum.word[1][0]), "+d"(sum.word[1][1])
        : "d"(digits.word[s][0]), "d"(digits.word[s][1]), "d"(digits.word[s + 1][0]),
          "d"(digits.word[s + 1][1]), "d"(factors.word[s]), "d"(factors.word[s + 1]));
  }
  if constexpr (kSteps % 2 == 1) {
    constexpr int s = kSteps - 1;
    asm volatile(
        "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+d"(sum.word[0][0]), "+d"(sum.word[0][1]), "+d"(sum.word[1][0]), "+d"(sum.word[1][1])
        : "d"(digits.word[s][0]), "d"(digits.word[s][1]), "d"(factors.word[s]));
  }
}

}  // namespace cipherd::kernels::cuda
