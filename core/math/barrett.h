// Barrett reduction: remainders by a fixed modulus without division.
//
//   const Barrett m = MakeBarrett(q);        // once; divides
//   uint64_t product = MulMod(a, b, m);      // five multiplications
#pragma once

#include <cstdint>

#include "core/math/host_device.h"
#include "core/math/modular.h"
#include "core/math/mulhi.h"

namespace cipherd::math {

// A modulus with its reciprocal floor(2^128 / q).
struct Barrett {
  uint64_t q;
  uint64_t reciprocal_high;
  uint64_t reciprocal_low;
};

// Requires q odd, 1 < q < 2^61.
inline Barrett MakeBarrett(uint64_t q) {
  // q does not divide 2^128, so that floor((2^128 - 1) / q) = floor(2^128 / q).
  const uint128_t reciprocal = ~uint128_t{0} / q;
  return {q, HighWord(reciprocal), LowWord(reciprocal)};
}

// Requires x < 2^128, that is any x. Returns x mod q in [0, q).
CIPHERD_HD uint64_t Reduce128(uint128_t x, const Barrett& m) {
  // floor(x · reciprocal / 2^128) falls short of floor(x / q) by at most one, because
  // x / q - x · reciprocal / 2^128 < x / 2^128 < 1; leaving the product of the low words out takes
  // at most one more. Only the quotient's low word matters: the remainder is below 3q.
  const uint64_t low = LowWord(x);
  const uint64_t high = HighWord(x);
  const uint128_t middle_a = MultiplyWide(low, m.reciprocal_high);
  const uint128_t middle_b = MultiplyWide(high, m.reciprocal_low);
  const uint64_t middle_low = LowWord(middle_a) + LowWord(middle_b);
  const uint64_t carry = middle_low < LowWord(middle_a) ? 1 : 0;
  const uint64_t quotient =
      high * m.reciprocal_high + HighWord(middle_a) + HighWord(middle_b) + carry;
  return ReduceOnce(ReduceOnce(low - quotient * m.q, 2 * m.q), m.q);
}

// Requires x < 2^64, that is any x. Returns x mod q in [0, q).
CIPHERD_HD uint64_t Reduce64(uint64_t x, const Barrett& m) {
  // reciprocal_high = floor(2^64 / q), so that the quotient falls short by at most one.
  const uint64_t quotient = MultiplyHigh(x, m.reciprocal_high);
  return ReduceOnce(x - quotient * m.q, m.q);
}

// Requires any a and b. Returns a · b mod q in [0, q).
CIPHERD_HD uint64_t MulMod(uint64_t a, uint64_t b, const Barrett& m) {
  return Reduce128(MultiplyWide(a, b), m);
}

}  // namespace cipherd::math
