// Reduction of a product of two residues, with half the multiplications of the general Reduce128.
//
//   const ProductModulus m = MakeProductModulus(MakeBarrett(q));
//   uint64_t product = MulModProduct(a, b, m);
#pragma once

#include <cstdint>

#include "core/math/barrett.h"
#include "core/math/host_device.h"
#include "core/math/modular.h"
#include "core/math/mulhi.h"

namespace cipherd::math {

// A modulus of b bits, 2^(b-1) < q < 2^b.
struct ProductModulus : Barrett {
  // floor(2^(b+63) / q), in (2^63, 2^64).
  uint64_t ratio;
  // b - 1.
  int shift;
};

CIPHERD_HD ProductModulus MakeProductModulus(const Barrett& m) {
  const int bits = BitLength(m.q);
  const uint128_t reciprocal = (static_cast<uint128_t>(m.reciprocal_high) << 64) | m.reciprocal_low;
  return {m, LowWord(reciprocal >> (65 - bits)), bits - 1};
}

// Requires x < 4q^2, q > 2. Returns x mod q in [0, q).
CIPHERD_HD uint64_t ReduceProduct(uint128_t x, const ProductModulus& m) {
  // x < 2^(b+63), so that its head x >> (b-1) fits a word. Rounding the head down costs the
  // quotient less than 2^(b-1) / q < 1, rounding the ratio less than x / 2^(b+63) < 1, and the
  // product less than 1: the remainder is below 3q.
  const uint64_t head = (HighWord(x) << (64 - m.shift)) | (LowWord(x) >> m.shift);
  const uint64_t quotient = MultiplyHigh(head, m.ratio);
  return ReduceOnce(ReduceOnce(LowWord(x) - quotient * m.q, 2 * m.q), m.q);
}

// Requires a, b < 2q (canonical, or once lazy). Returns a · b mod q in [0, q).
CIPHERD_HD uint64_t MulModProduct(uint64_t a, uint64_t b, const ProductModulus& m) {
  return ReduceProduct(MultiplyWide(a, b), m);
}

}  // namespace cipherd::math
