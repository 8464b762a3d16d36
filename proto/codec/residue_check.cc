#include "proto/codec/residue_check.h"

namespace cipherd::codec::internal {

bool AllBelow(std::span<const uint64_t> residues, uint64_t prime) {
  // For prime <= 2^63: x < prime exactly where the top bit of x is clear and that of x - prime mod
  // 2^64 is set. Unlike a comparison of 64-bit words this needs nothing beyond SSE2.
  uint64_t top_bits = uint64_t{1} << 63;
  for (const uint64_t x : residues) top_bits &= (x - prime) & ~x;
  return top_bits != 0;
}

}  // namespace cipherd::codec::internal
