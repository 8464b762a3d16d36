// Whether residues are canonical: each below its prime. Internal to the codec.
#pragma once

#include <cstdint>
#include <span>

namespace cipherd::codec::internal {

// Whether every entry is below `prime`. Requires prime <= 2^63. Reads all entries, without
// branches, so that compilers vectorise it.
bool AllBelow(std::span<const uint64_t> residues, uint64_t prime);

}  // namespace cipherd::codec::internal
