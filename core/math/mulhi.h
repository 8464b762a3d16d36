// Products of two 64-bit words, and what else of one word has an instruction of its own. The only
// place where host and device code differ, with rounded.h for doubles.
#pragma once

#include <cstdint>

#include "core/math/host_device.h"

namespace cipherd::math {

__extension__ typedef unsigned __int128 uint128_t;

// Returns floor(a · b / 2^64), for all a and b.
CIPHERD_HD uint64_t MultiplyHigh(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>((static_cast<uint128_t>(a) * b) >> 64);
#endif
}

// Returns a · b, for all a and b.
CIPHERD_HD uint128_t MultiplyWide(uint64_t a, uint64_t b) {
  return (static_cast<uint128_t>(MultiplyHigh(a, b)) << 64) | (a * b);
}

CIPHERD_HD uint64_t HighWord(uint128_t x) { return static_cast<uint64_t>(x >> 64); }
CIPHERD_HD uint64_t LowWord(uint128_t x) { return static_cast<uint64_t>(x); }

// Requires x > 0. Returns the number of bits of x, without leading zeros.
CIPHERD_HD int BitLength(uint64_t x) {
#if defined(__CUDA_ARCH__)
  return 64 - __clzll(static_cast<long long>(x));
#else
  return 64 - __builtin_clzll(x);
#endif
}

}  // namespace cipherd::math
