// Reversal of the low bits of an index.
#pragma once

#include <cstdint>

#include "core/math/host_device.h"

namespace cipherd::math {

// Requires 1 <= bits <= 32, x < 2^bits. Returns the bits of x in the opposite order.
CIPHERD_HD uint32_t BitReverse(uint32_t x, int bits) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0f0f0f0fu) | ((x & 0x0f0f0f0fu) << 4);
  x = ((x >> 8) & 0x00ff00ffu) | ((x & 0x00ff00ffu) << 8);
  x = (x >> 16) | (x << 16);
  return x >> (32 - bits);
}

}  // namespace cipherd::math
