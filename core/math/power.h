// Powers and inverses modulo a prime.
#pragma once

#include <cstdint>

#include "core/math/barrett.h"

namespace cipherd::math {

// Requires base < q. Returns base^exponent mod q in [0, q); 1 for exponent 0.
inline uint64_t PowMod(uint64_t base, uint64_t exponent, const Barrett& m) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = MulMod(result, base, m);
    base = MulMod(base, base, m);
  }
  return result;
}

// Requires q prime, 0 < a < q. Returns a^-1 mod q in [1, q).
inline uint64_t InverseMod(uint64_t a, const Barrett& m) { return PowMod(a, m.q - 2, m); }

}  // namespace cipherd::math
