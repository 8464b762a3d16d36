#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/automorphism_body.h"
#include "core/kernels/host/launch.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/key_inner_product_body.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::host {
namespace {

using ring::PrimeConstants;

// Where one limb of one batch item lies.
struct LimbOperands {
  int digit_count;
  const uint64_t* digits;
  int64_t digit_stride;
  // The limb of the first component, by digit; the second is component_stride words on.
  std::array<const uint64_t*, kMaxDigits> key;
  int64_t component_stride;
  uint64_t* out0;
  uint64_t* out1;
};

// Entries that are summed side by side. Limbs of different digits lie a multiple of 4 KiB apart and
// compete for the same lines of a cache: a tile reads some whole lines of one before it turns to
// the next.
constexpr int kTile = 32;

// `source(i)` is the entry of the digits that meets entry i of the key.
template <class A, class Source>
void LimbProduct(const LimbOperands& operands, int64_t n, const typename A::Modulus& m,
                 const Source& source) {
  const int64_t tile = std::min<int64_t>(n, kTile);
  for (int64_t begin = 0; begin < n; begin += tile) {
    std::array<KeyInnerProduct<A>, kTile> sums = {};
    for (int d = 0; d < operands.digit_count; ++d) {
      const uint64_t* digit = operands.digits + d * operands.digit_stride;
      const uint64_t* key0 = operands.key[d] + begin;
      const uint64_t* key1 = key0 + operands.component_stride;
      // An automorphism maps aligned blocks of 2^k entries to such blocks, in an order that the
      // processor cannot foresee: these are the lines of the next tile.
      if (begin + tile < n) {
        for (int64_t k = 0; k < tile; k += 8) __builtin_prefetch(digit + source(begin + tile + k));
      }
      for (int64_t k = 0; k < tile; ++k) {
        sums[k].Add(digit[source(begin + k)], key0[k], key1[k]);
      }
    }
    for (int64_t k = 0; k < tile; ++k) {
      operands.out0[begin + k] = sums[k].Component0(m);
      operands.out1[begin + k] = sums[k].Component1(m);
    }
  }
}

}  // namespace

template <class A>
absl::Status KeyInnerProductLaunchers<A>::Run(const RingTables& ring, const LimbPrimes& limbs,
                                              int digit_count, uint32_t galois_element,
                                              ConstPolyView digits, const KeySlot& key,
                                              PolyView out, Stream& stream) {
  return Launch("key_inner_product", stream, [=] {
    const int64_t n = int64_t{1} << ring.log_n;
    const int64_t batch = out.outer_count / 2;
    const uint64_t* const key_words = *key.slot;
    std::vector<uint32_t> sources;
    if (galois_element != 1) sources = AutomorphismNttSources(galois_element, ring.log_n);
    LimbOperands operands;
    operands.digit_count = digit_count;
    operands.digit_stride = batch * digits.outer_stride;
    operands.component_stride = key.key_limb_count * n;
    ForEachLimb(ring, limbs, batch, [&](int64_t item, int limb, const PrimeConstants& prime) {
      const auto m = ArithmeticTables<A>::Modulus(prime);
      operands.digits = LimbOf(digits, item, limb, ring.log_n);
      for (int d = 0; d < digit_count; ++d) {
        operands.key[d] = key_words + key.key_digits[d] * 2 * operands.component_stride +
                          (key.first_limb + limb) * n;
      }
      operands.out0 = LimbOf(out, item, limb, ring.log_n);
      operands.out1 = LimbOf(out, batch + item, limb, ring.log_n);
      if (galois_element == 1) {
        LimbProduct<A>(operands, n, m, [](int64_t i) { return i; });
      } else {
        LimbProduct<A>(operands, n, m, [&](int64_t i) { return int64_t{sources[i]}; });
      }
    });
  });
}

template struct KeyInnerProductLaunchers<math::IntegerArithmetic>;
template struct KeyInnerProductLaunchers<math::FmaArithmetic>;

}  // namespace cipherd::kernels::host
