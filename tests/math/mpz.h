// Big integers for references, on GMP.
#pragma once

#include <gmpxx.h>

#include <cstdint>

#include "core/math/mulhi.h"

namespace cipherd::testing {

inline mpz_class ToMpz(uint64_t x) {
  mpz_class result;
  mpz_import(result.get_mpz_t(), 1, -1, sizeof(x), 0, 0, &x);
  return result;
}

inline mpz_class ToMpz(math::uint128_t x) {
  return (ToMpz(math::HighWord(x)) << 64) + ToMpz(math::LowWord(x));
}

// Requires 0 <= x < 2^64.
inline uint64_t ToWord(const mpz_class& x) {
  uint64_t result = 0;
  mpz_export(&result, nullptr, -1, sizeof(result), 0, 0, x.get_mpz_t());
  return result;
}

// Returns x mod q in [0, q), also for negative x.
inline uint64_t Residue(const mpz_class& x, uint64_t q) {
  mpz_class result;
  mpz_mod(result.get_mpz_t(), x.get_mpz_t(), ToMpz(q).get_mpz_t());
  return ToWord(result);
}

}  // namespace cipherd::testing
