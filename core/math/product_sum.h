// Sums of products that are reduced once, at the end.
//
//   uint128_t sum = 0;
//   for (int d = 0; d < digits; ++d) AddProduct(a[d], b[d], sum);   // at most kMaxProductTerms
//   uint64_t result = Reduce128(sum, m);
#pragma once

#include <cstdint>

#include "core/math/host_device.h"
#include "core/math/mulhi.h"

namespace cipherd::math {

// 64 · (2^61 - 1)^2 < 2^128 - 2^67: so many products of words below 2^61 fit 128 bits, and beside
// them one more product of a word up to 64 with a word below 2^61.
inline constexpr int kMaxProductTerms = 64;

// sum += a · b. Requires a, b < 2^61 and at most kMaxProductTerms terms in one sum.
CIPHERD_HD void AddProduct(uint64_t a, uint64_t b, uint128_t& sum) { sum += MultiplyWide(a, b); }

}  // namespace cipherd::math
