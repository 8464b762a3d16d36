// Operations that act entry by entry on words of limbs.
#pragma once

#include <cstdint>

#include "core/kernels/kernel_table.h"
#include "core/math/host_device.h"

namespace cipherd::kernels {

// All of these take and return words that are canonical residues.

template <class A, BinaryOp kOp>
CIPHERD_HD uint64_t BinaryEntry(uint64_t a, uint64_t b, const typename A::Modulus& m) {
  const auto x = A::FromWord(a);
  const auto y = A::FromWord(b);
  if constexpr (kOp == BinaryOp::kAdd) {
    return A::ToWord(A::Add(x, y, m));
  } else if constexpr (kOp == BinaryOp::kSubtract) {
    return A::ToWord(A::Subtract(x, y, m));
  } else {
    static_assert(kOp == BinaryOp::kMultiply);
    return A::ToWord(A::Multiply(x, y, m));
  }
}

template <class A>
CIPHERD_HD uint64_t NegateEntry(uint64_t a, const typename A::Modulus& m) {
  return A::ToWord(A::Negate(A::FromWord(a), m));
}

// Returns sum + a · b.
template <class A>
CIPHERD_HD uint64_t MultiplyAddEntry(uint64_t a, uint64_t b, uint64_t sum,
                                     const typename A::Modulus& m) {
  const auto product = A::Multiply(A::FromWord(a), A::FromWord(b), m);
  return A::ToWord(A::Add(A::FromWord(sum), product, m));
}

// Returns a · scalar.
template <class A>
CIPHERD_HD uint64_t MultiplyScalarEntry(uint64_t a, const typename A::Factor& scalar,
                                        const typename A::Modulus& m) {
  return A::ToWord(A::MultiplyFactor(A::FromWord(a), scalar, m));
}

// Returns (a - b) · scalar.
template <class A>
CIPHERD_HD uint64_t SubtractScaleEntry(uint64_t a, uint64_t b, const typename A::Factor& scalar,
                                       const typename A::Modulus& m) {
  return A::ToWord(A::SubtractMultiplyFactor(A::FromWord(a), A::FromWord(b), scalar, m));
}

struct TensorProductWords {
  uint64_t out0;
  uint64_t out1;
  uint64_t out2;
};

// Returns (a0·b0, a0·b1 + a1·b0, a1·b1).
template <class A>
CIPHERD_HD TensorProductWords TensorProductEntry(uint64_t a0, uint64_t a1, uint64_t b0, uint64_t b1,
                                                 const typename A::Modulus& m) {
  const auto x0 = A::FromWord(a0);
  const auto x1 = A::FromWord(a1);
  const auto y0 = A::FromWord(b0);
  const auto y1 = A::FromWord(b1);
  typename A::ProductSum cross{};
  A::AddWordsToSum(a0, b1, cross);
  A::AddWordsToSum(a1, b0, cross);
  return {A::ToWord(A::Multiply(x0, y0, m)), A::ToWord(A::ReduceSum(cross, m)),
          A::ToWord(A::Multiply(x1, y1, m))};
}

// Returns v mod q.
template <class A>
CIPHERD_HD uint64_t LiftSignedEntry(int64_t v, const typename A::Modulus& m) {
  return A::ToWord(A::FromSigned(v, m));
}

}  // namespace cipherd::kernels
