// Sums modulo q of canonical residues, without branches.
#pragma once

#include <cstdint>

#include "core/math/host_device.h"

namespace cipherd::math {

// Every modulus of this library is below 2^kMaxModulusBits, so that 4q fits a word with a bit to
// spare and 64 products of residues fit 128 bits.
inline constexpr int kMaxModulusBits = 61;

// Requires x < 2 · bound, bound <= 2^63. Returns x mod bound: x or x - bound.
CIPHERD_HD uint64_t ReduceOnce(uint64_t x, uint64_t bound) { return x >= bound ? x - bound : x; }

// Requires a, b < q <= 2^63. Returns a + b mod q in [0, q).
CIPHERD_HD uint64_t AddMod(uint64_t a, uint64_t b, uint64_t q) { return ReduceOnce(a + b, q); }

// Requires a, b < q <= 2^63. Returns a - b mod q in [0, q).
CIPHERD_HD uint64_t SubMod(uint64_t a, uint64_t b, uint64_t q) { return a - b + (a < b ? q : 0); }

// Requires a < q. Returns -a mod q in [0, q).
CIPHERD_HD uint64_t NegateMod(uint64_t a, uint64_t q) { return a == 0 ? 0 : q - a; }

}  // namespace cipherd::math
