// Entry by entry operations on one limb, the inner product with a key, and basis conversion, on
// vectors. The mathematics is that of entry_body.h, key_inner_product_body.h and
// basis_conversion_body.h; ranges are those of fma_vectors-inl.h, as multiples of q.
#if defined(CIPHERD_KERNELS_HOST_VECTOR_ENTRIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CIPHERD_KERNELS_HOST_VECTOR_ENTRIES_INL_H_
#undef CIPHERD_KERNELS_HOST_VECTOR_ENTRIES_INL_H_
#else
#define CIPHERD_KERNELS_HOST_VECTOR_ENTRIES_INL_H_
#endif

#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/basis_conversion_body.h"
#include "core/kernels/host/fma_vectors-inl.h"
#include "core/kernels/host/limb_kernels.h"
#include "core/math/integer_arithmetic.h"
#include "core/ring/ring_tables.h"
#include "hwy/highway.h"

#if CIPHERD_HAS_FMA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace cipherd::kernels::host::HWY_NAMESPACE {

using Full = hn::ScalableTag<double>;
using Vectors = FmaVectors<Full>;

inline int64_t LaneCount() { return static_cast<int64_t>(hn::Lanes(Full())); }

// out = op(a, b), residues in [0, q) in and |.| < q out.
template <class Op>
HWY_INLINE void ForEachPair(const ring::PrimeConstants& prime, int64_t n, const uint64_t* a,
                            const uint64_t* b, uint64_t* out, const Op& op) {
  const auto m = Vectors::MakeModulus(ScalarModulus(prime.q));
  for (int64_t i = 0; i < n; i += LaneCount()) {
    const auto result = op(Vectors::LoadWords(a + i), Vectors::LoadWords(b + i), m);
    Vectors::StoreWords(Vectors::AddIfNegative(result, m), out + i);
  }
}

void AddLimb(const ring::PrimeConstants& prime, int64_t n, const uint64_t* a, const uint64_t* b,
             uint64_t* out) {
  ForEachPair(prime, n, a, b, out,
              [](auto x, auto y, const auto& m) HWY_ATTR { return hn::Sub(hn::Add(x, y), m.q); });
}

void SubtractLimb(const ring::PrimeConstants& prime, int64_t n, const uint64_t* a,
                  const uint64_t* b, uint64_t* out) {
  ForEachPair(prime, n, a, b, out,
              [](auto x, auto y, const auto&) HWY_ATTR { return hn::Sub(x, y); });
}

void MultiplyLimb(const ring::PrimeConstants& prime, int64_t n, const uint64_t* a,
                  const uint64_t* b, uint64_t* out) {
  ForEachPair(prime, n, a, b, out,
              [](auto x, auto y, const auto& m) HWY_ATTR { return Vectors::Multiply(x, y, m); });
}

void NegateLimb(const ring::PrimeConstants& prime, int64_t n, const uint64_t* a, uint64_t* out) {
  const auto m = Vectors::MakeModulus(ScalarModulus(prime.q));
  for (int64_t i = 0; i < n; i += LaneCount()) {
    const auto negative = hn::Sub(hn::Zero(Full()), Vectors::LoadWords(a + i));
    Vectors::StoreWords(Vectors::AddIfNegative(negative, m), out + i);
  }
}

void MultiplyAddLimb(const ring::PrimeConstants& prime, int64_t n, const uint64_t* a,
                     const uint64_t* b, uint64_t* sum) {
  const auto m = Vectors::MakeModulus(ScalarModulus(prime.q));
  for (int64_t i = 0; i < n; i += LaneCount()) {
    const auto product = Vectors::Multiply(Vectors::LoadWords(a + i), Vectors::LoadWords(b + i), m);
    const auto result = hn::Add(product, Vectors::LoadWords(sum + i));
    Vectors::StoreWords(Vectors::Canonical(result, m), sum + i);
  }
}

void MultiplyScalarLimb(const ring::PrimeConstants& prime, int64_t n, uint64_t scalar,
                        uint64_t /*shoup*/, const uint64_t* a, uint64_t* out) {
  const ScalarModulus modulus(prime.q);
  const auto m = Vectors::MakeModulus(modulus);
  const auto f = Vectors::MakeFactor(scalar, modulus);
  for (int64_t i = 0; i < n; i += LaneCount()) {
    const auto product = Vectors::MultiplyFactor(Vectors::LoadWords(a + i), f, m);
    Vectors::StoreWords(Vectors::AddIfNegative(product, m), out + i);
  }
}

void SubtractScaleLimb(const ring::PrimeConstants& prime, int64_t n, uint64_t scalar,
                       uint64_t /*shoup*/, const uint64_t* a, const uint64_t* b, uint64_t* out) {
  const ScalarModulus modulus(prime.q);
  const auto m = Vectors::MakeModulus(modulus);
  const auto f = Vectors::MakeFactor(scalar, modulus);
  for (int64_t i = 0; i < n; i += LaneCount()) {
    const auto difference = hn::Sub(Vectors::LoadWords(a + i), Vectors::LoadWords(b + i));
    const auto product = Vectors::MultiplyFactor(difference, f, m);
    Vectors::StoreWords(Vectors::AddIfNegative(product, m), out + i);
  }
}

void TensorProductLimb(const ring::PrimeConstants& prime, int64_t n,
                       const TensorProductOperands& operands) {
  const auto m = Vectors::MakeModulus(ScalarModulus(prime.q));
  for (int64_t i = 0; i < n; i += LaneCount()) {
    const auto a0 = Vectors::LoadWords(operands.a0 + i);
    const auto a1 = Vectors::LoadWords(operands.a1 + i);
    const auto b0 = Vectors::LoadWords(operands.b0 + i);
    const auto b1 = Vectors::LoadWords(operands.b1 + i);
    const auto cross = hn::Add(Vectors::Multiply(a0, b1, m), Vectors::Multiply(a1, b0, m));
    Vectors::StoreWords(Vectors::AddIfNegative(Vectors::Multiply(a0, b0, m), m), operands.out0 + i);
    Vectors::StoreWords(Vectors::Canonical(cross, m), operands.out1 + i);
    Vectors::StoreWords(Vectors::AddIfNegative(Vectors::Multiply(a1, b1, m), m), operands.out2 + i);
  }
}

// Entries that are summed side by side: digits are gathered for them once, and limbs of different
// digits, a multiple of 4 KiB apart, do not compete for the lines of a cache for long.
inline constexpr int64_t kProductTile = 64;
// A product is at most 0.875, and a reduced sum 0.5: three products fit 4 beside it.
inline constexpr int kLazyProducts = 3;

void KeyInnerProductLimb(const ring::PrimeConstants& prime, int64_t n,
                         const KeyProductOperands& operands) {
  const auto m = Vectors::MakeModulus(ScalarModulus(prime.q));
  const int64_t lanes = LaneCount();
  HWY_ALIGN uint64_t gathered[kProductTile];
  HWY_ALIGN double sums[2][kProductTile];
  for (int64_t begin = 0; begin < n; begin += kProductTile) {
    for (int64_t k = 0; k < kProductTile; k += lanes) {
      hn::Store(hn::Zero(Full()), Full(), sums[0] + k);
      hn::Store(hn::Zero(Full()), Full(), sums[1] + k);
    }
    for (int d = 0; d < operands.digit_count; ++d) {
      const uint64_t* digit = operands.digits[d];
      const uint64_t* tile = digit + begin;
      if (operands.sources != nullptr) {
        const uint32_t* sources = operands.sources + begin;
        // An automorphism's order is not foreseen by the processor: these are the next tile's
        // lines.
        if (begin + kProductTile < n) {
          for (int64_t k = 0; k < kProductTile; k += 8) {
            __builtin_prefetch(digit + sources[kProductTile + k]);
          }
        }
        for (int64_t k = 0; k < kProductTile; ++k) gathered[k] = digit[sources[k]];
        tile = gathered;
      }
      const uint64_t* key0 = operands.key[d] + begin;
      const uint64_t* key1 = key0 + operands.component_stride;
      const bool reduces = d % kLazyProducts == kLazyProducts - 1;
      for (int64_t k = 0; k < kProductTile; k += lanes) {
        const auto x = Vectors::LoadWords(tile + k);
        auto sum0 = hn::Load(Full(), sums[0] + k);
        auto sum1 = hn::Load(Full(), sums[1] + k);
        sum0 = hn::Add(sum0, Vectors::Multiply(x, Vectors::LoadWords(key0 + k), m));
        sum1 = hn::Add(sum1, Vectors::Multiply(x, Vectors::LoadWords(key1 + k), m));
        if (reduces) {
          sum0 = Vectors::Reduce(sum0, m);
          sum1 = Vectors::Reduce(sum1, m);
        }
        hn::Store(sum0, Full(), sums[0] + k);
        hn::Store(sum1, Full(), sums[1] + k);
      }
    }
    for (int64_t k = 0; k < kProductTile; k += lanes) {
      Vectors::StoreWords(Vectors::Canonical(hn::Load(Full(), sums[0] + k), m),
                          operands.out0 + begin + k);
      Vectors::StoreWords(Vectors::Canonical(hn::Load(Full(), sums[1] + k), m),
                          operands.out1 + begin + k);
    }
  }
}

// Coefficients that are converted side by side, so that their digits stay in the first-level cache
// while every target reads them: those of 64 primes are 32 KiB.
inline constexpr int64_t kConversionTile = 64;
static_assert(kConversionGrain % kConversionTile == 0);

// The digits y_i of a tile, in [0, q_i), and how often Q goes into what they stand for.
struct ConversionTile {
  HWY_ALIGN double digits[kMaxLimbs][kConversionTile];
  HWY_ALIGN double overflow[kConversionTile];
};

inline void MakeConversionTile(const ring::RingTables& ring,
                               const ring::BasisConversionTables& tables, const uint64_t* in,
                               int64_t n, ConversionTile& tile) {
  const int64_t lanes = LaneCount();
  for (int64_t k = 0; k < kConversionTile; ++k) tile.overflow[k] = 0;
  for (int i = 0; i < tables.source_count; ++i) {
    const uint64_t q = ring.primes[tables.source_primes[i]].q;
    const ScalarModulus modulus(q);
    const auto m = Vectors::MakeModulus(modulus);
    const auto f = Vectors::MakeFactor(tables.hat_inverse[i], modulus);
    const auto inverse = hn::Set(Full(), tables.source_inverse[i]);
    for (int64_t k = 0; k < kConversionTile; k += lanes) {
      const auto product = Vectors::MultiplyFactor(Vectors::LoadWords(in + i * n + k), f, m);
      const auto y = Vectors::AddIfNegative(product, m);
      hn::Store(y, Full(), tile.digits[i] + k);
      // Two roundings, as everywhere (basis_conversion_body.h).
      const auto quotient = hn::Load(Full(), tile.overflow + k);
      hn::Store(hn::Add(quotient, hn::Mul(y, inverse)), Full(), tile.overflow + k);
    }
  }
  for (int64_t k = 0; k < kConversionTile; k += lanes) {
    const auto quotient = hn::Load(Full(), tile.overflow + k);
    hn::Store(hn::Floor(hn::Add(quotient, hn::Set(Full(), 0.5))), Full(), tile.overflow + k);
  }
}

// Target prime j, below 2^50. A digit need not be below the target, but is below 2^50:
// its product is at most 0.875 as in (1).
inline void ConvertToTarget(const ring::BasisConversionTables& tables, int j, uint64_t q,
                            const ConversionTile& tile, uint64_t* out) {
  const int64_t lanes = LaneCount();
  const ScalarModulus modulus(q);
  const auto m = Vectors::MakeModulus(modulus);
  const uint64_t* hat = tables.hat + static_cast<int64_t>(j) * tables.source_count;
  const auto minus_product = Vectors::MakeFactor(
      tables.source_product[j] == 0 ? 0 : q - tables.source_product[j], modulus);
  for (int64_t k = 0; k < kConversionTile; k += lanes) {
    auto sum = Vectors::Reduce(
        Vectors::MultiplyFactor(hn::Load(Full(), tile.overflow + k), minus_product, m), m);
    for (int i = 0; i < tables.source_count; ++i) {
      const auto f = Vectors::MakeFactor(hat[i], modulus);
      sum = hn::Add(sum, Vectors::MultiplyFactor(hn::Load(Full(), tile.digits[i] + k), f, m));
      if (i % kLazyProducts == kLazyProducts - 1) sum = Vectors::Reduce(sum, m);
    }
    Vectors::StoreWords(Vectors::Canonical(sum, m), out + k);
  }
}

void ConvertBasisOfLimbs(const ring::RingTables& ring, const ring::BasisConversionTables& tables,
                         int64_t begin, int64_t end, const uint64_t* in, uint64_t* out) {
  using Integer = math::IntegerArithmetic;
  const int64_t n = int64_t{1} << ring.log_n;
  ConversionTile tile;
  for (int64_t at = begin; at < end; at += kConversionTile) {
    MakeConversionTile(ring, tables, in + at, n, tile);
    for (int j = 0; j < tables.target_count; ++j) {
      const ring::PrimeConstants& prime = ring.primes[tables.target_primes[j]];
      uint64_t* to = out + j * n + at;
      if (prime.q >> ring::kFmaPrimeBits == 0) {
        ConvertToTarget(tables, j, prime.q, tile, to);
        continue;
      }
      const auto m = ArithmeticTables<Integer>::Modulus(prime);
      for (int64_t k = 0; k < kConversionTile; ++k) {
        to[k] = Integer::ToWord(ConversionTarget<Integer>(
            [&](int i) { return static_cast<uint64_t>(tile.digits[i][k]); },
            static_cast<uint64_t>(tile.overflow[k]), tables, j, m));
      }
    }
  }
}

}  // namespace cipherd::kernels::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // CIPHERD_HAS_FMA_VECTORS

#endif
