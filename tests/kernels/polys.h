// Polynomials of tests: values on the host, with the strides of a view, filled in patterns.
#pragma once

#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/kernel_table.h"
#include "core/ring/rns_basis.h"

namespace cipherd::testing {

enum class Fill { kRandom, kZeros, kGreatest };

// [outer_count, limb_count, N] words, outer_stride words from one polynomial to the next; what lies
// between them holds kGap and must keep it.
struct Polys {
  static constexpr uint64_t kGap = 0xabababababababab;

  int log_n = 0;
  int limb_count = 0;
  int64_t outer_count = 0;
  int64_t outer_stride = 0;
  std::vector<uint64_t> words;

  Polys(int log_n, int limb_count, int64_t outer_count, int64_t gap_words = 0)
      : log_n(log_n),
        limb_count(limb_count),
        outer_count(outer_count),
        outer_stride((int64_t{limb_count} << log_n) + gap_words),
        words(outer_count * outer_stride, kGap) {}

  int64_t n() const { return int64_t{1} << log_n; }
  uint64_t& at(int64_t outer, int limb, int64_t i) {
    return words[outer * outer_stride + limb * n() + i];
  }
  uint64_t at(int64_t outer, int limb, int64_t i) const {
    return words[outer * outer_stride + limb * n() + i];
  }
  kernels::PolyView ViewAt(void* data) const {
    return {static_cast<uint64_t*>(data), outer_count, outer_stride};
  }
};

// Limbs of the primes `rows`.
inline kernels::LimbPrimes LimbsOf(const std::vector<uint16_t>& rows) {
  kernels::LimbPrimes limbs;
  limbs.count = static_cast<int>(rows.size());
  for (size_t l = 0; l < rows.size(); ++l) limbs.prime[l] = rows[l];
  return limbs;
}

// Canonical residues of each limb's prime.
inline Polys FilledPolys(const ring::RnsBasis& basis, const kernels::LimbPrimes& limbs,
                         int64_t outer_count, int64_t gap_words, Fill fill,
                         std::mt19937_64& random) {
  Polys polys(basis.log_n(), limbs.count, outer_count, gap_words);
  for (int64_t o = 0; o < outer_count; ++o) {
    for (int l = 0; l < limbs.count; ++l) {
      const uint64_t q = basis.prime(limbs.prime[l]);
      for (int64_t i = 0; i < polys.n(); ++i) {
        polys.at(o, l, i) = fill == Fill::kZeros      ? 0
                            : fill == Fill::kGreatest ? q - 1
                                                      : random() % q;
      }
    }
  }
  return polys;
}

}  // namespace cipherd::testing
