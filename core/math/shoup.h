// Shoup multiplication by a constant known in advance: two multiplications to a word, one to a high
// word.
//
//   const uint64_t w_shoup = ShoupQuotient(w, m);      // once per constant
//   uint64_t product = MulShoup(a, w, w_shoup, m.q);
#pragma once

#include <cstdint>

#include "core/math/barrett.h"
#include "core/math/host_device.h"
#include "core/math/modular.h"
#include "core/math/mulhi.h"

namespace cipherd::math {

// Requires w < q. Returns floor(w · 2^64 / q).
CIPHERD_HD uint64_t ShoupQuotient(uint64_t w, const Barrett& m) {
  // floor(w · reciprocal / 2^64) falls short of the quotient by at most one, and the remainder of
  // w · 2^64 by it is below 2q < 2^62, so that its low word is all of it.
  const uint64_t quotient = w * m.reciprocal_high + MultiplyHigh(w, m.reciprocal_low);
  const uint64_t remainder = uint64_t{0} - quotient * m.q;
  return quotient + (remainder >= m.q ? 1 : 0);
}

// Requires any a < 2^64, w < q < 2^62, w_shoup = ShoupQuotient(w). Returns a·w mod q in [0, 2q).
CIPHERD_HD uint64_t MulShoupLazy(uint64_t a, uint64_t w, uint64_t w_shoup, uint64_t q) {
  return a * w - MultiplyHigh(a, w_shoup) * q;
}

// Requires any a < 2^64, w < q < 2^62, w_shoup = ShoupQuotient(w). Returns a·w mod q in [0, q).
CIPHERD_HD uint64_t MulShoup(uint64_t a, uint64_t w, uint64_t w_shoup, uint64_t q) {
  return ReduceOnce(MulShoupLazy(a, w, w_shoup, q), q);
}

}  // namespace cipherd::math
