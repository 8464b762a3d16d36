#include <algorithm>
#include <array>
#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/automorphism_body.h"
#include "core/kernels/basis_conversion_body.h"
#include "core/kernels/entry_body.h"
#include "core/kernels/host/limb_kernels.h"
#include "core/kernels/host/scalar_ntt.h"
#include "core/kernels/key_inner_product_body.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::host {
namespace {

using Prime = ring::PrimeConstants;

template <class A>
struct Loops {
  static auto ModulusOf(const Prime& prime) { return ArithmeticTables<A>::Modulus(prime); }

  static void ForwardNtt(const Prime& prime, int log_n, const uint64_t* in, uint64_t* out) {
    ScalarTransform<A>(prime).ForwardTree(log_n, in, out);
  }
  static void InverseNtt(const Prime& prime, int log_n, const uint64_t* in, uint64_t* out) {
    ScalarTransform<A>(prime).InverseTree(log_n, in, out);
  }

  template <BinaryOp kOp>
  static void Binary(const Prime& prime, int64_t n, const uint64_t* a, const uint64_t* b,
                     uint64_t* out) {
    const auto m = ModulusOf(prime);
    for (int64_t i = 0; i < n; ++i) out[i] = BinaryEntry<A, kOp>(a[i], b[i], m);
  }
  static void Negate(const Prime& prime, int64_t n, const uint64_t* a, uint64_t* out) {
    const auto m = ModulusOf(prime);
    for (int64_t i = 0; i < n; ++i) out[i] = NegateEntry<A>(a[i], m);
  }
  static void MultiplyAdd(const Prime& prime, int64_t n, const uint64_t* a, const uint64_t* b,
                          uint64_t* sum) {
    const auto m = ModulusOf(prime);
    for (int64_t i = 0; i < n; ++i) sum[i] = MultiplyAddEntry<A>(a[i], b[i], sum[i], m);
  }
  static void MultiplyScalar(const Prime& prime, int64_t n, uint64_t scalar, uint64_t shoup,
                             const uint64_t* a, uint64_t* out) {
    const auto m = ModulusOf(prime);
    const auto factor = A::MakeFactor(scalar, shoup, m);
    for (int64_t i = 0; i < n; ++i) out[i] = MultiplyScalarEntry<A>(a[i], factor, m);
  }
  static void SubtractScale(const Prime& prime, int64_t n, uint64_t scalar, uint64_t shoup,
                            const uint64_t* a, const uint64_t* b, uint64_t* out) {
    const auto m = ModulusOf(prime);
    const auto factor = A::MakeFactor(scalar, shoup, m);
    for (int64_t i = 0; i < n; ++i) out[i] = SubtractScaleEntry<A>(a[i], b[i], factor, m);
  }
  static void TensorProduct(const Prime& prime, int64_t n, const TensorProductOperands& x) {
    const auto m = ModulusOf(prime);
    for (int64_t i = 0; i < n; ++i) {
      const TensorProductWords words = TensorProductEntry<A>(x.a0[i], x.a1[i], x.b0[i], x.b1[i], m);
      x.out0[i] = words.out0;
      x.out1[i] = words.out1;
      x.out2[i] = words.out2;
    }
  }
  static void LiftSigned(const Prime& prime, int64_t n, const int64_t* in, uint64_t* out) {
    const auto m = ModulusOf(prime);
    for (int64_t i = 0; i < n; ++i) out[i] = LiftSignedEntry<A>(in[i], m);
  }
  static void AutomorphismCoefficient(const Prime& prime, int log_n, uint32_t galois_inverse,
                                      const uint64_t* a, uint64_t* out) {
    const auto m = ModulusOf(prime);
    for (uint32_t i = 0; i < uint32_t{1} << log_n; ++i) {
      const SignedIndex source = AutomorphismCoefficientSource(i, galois_inverse, log_n);
      out[i] = AutomorphismCoefficientEntry<A>(a[source.index], source.negate, m);
    }
  }

  static void KeyInnerProductOf(const Prime& prime, int64_t n, const KeyProductOperands& operands) {
    const uint32_t* sources = operands.sources;
    if (sources == nullptr) {
      SumOverDigits(prime, n, operands, [](int64_t i) { return i; });
    } else {
      SumOverDigits(prime, n, operands, [sources](int64_t i) { return int64_t{sources[i]}; });
    }
  }

  // `source(i)` is the entry of the digits that meets entry i of the key.
  template <class Source>
  static void SumOverDigits(const Prime& prime, int64_t n, const KeyProductOperands& operands,
                            const Source& source) {
    // Entries that are summed side by side. Limbs of different digits lie a multiple of 4 KiB apart
    // and compete for the same lines of a cache: a tile reads some whole lines of one before it
    // turns to the next.
    constexpr int kTile = 32;
    const auto m = ModulusOf(prime);
    const int64_t tile = std::min<int64_t>(n, kTile);
    for (int64_t begin = 0; begin < n; begin += tile) {
      std::array<KeyInnerProduct<A>, kTile> sums = {};
      for (int d = 0; d < operands.digit_count; ++d) {
        const uint64_t* digit = operands.digits[d];
        const uint64_t* key0 = operands.key[d] + begin;
        const uint64_t* key1 = key0 + operands.component_stride;
        // An automorphism maps aligned blocks of 2^k entries to such blocks, in an order that the
        // processor cannot foresee: these are the lines of the next tile.
        if (begin + tile < n) {
          for (int64_t k = 0; k < tile; k += 8) {
            __builtin_prefetch(digit + source(begin + tile + k));
          }
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

  static void ConvertBasis(const ring::RingTables& ring, const ring::BasisConversionTables& tables,
                           int64_t begin, int64_t end, const uint64_t* in, uint64_t* out) {
    // Every N is a multiple; the digits of 64 primes are 8 KiB and stay in the first-level cache.
    constexpr int kTile = 16;
    const int64_t n = int64_t{1} << ring.log_n;
    for (int64_t at = begin; at < end; at += kTile) {
      std::array<std::array<uint64_t, kTile>, kMaxLimbs> digits;
      std::array<double, kTile> quotient = {};
      for (int i = 0; i < tables.source_count; ++i) {
        const auto m = ModulusOf(ring.primes[tables.source_primes[i]]);
        for (int k = 0; k < kTile; ++k) {
          const auto y = ConversionDigit<A>(A::FromWord(in[i * n + at + k]), tables, i, m);
          AddToQuotient<A>(y, tables, i, quotient[k]);
          digits[i][k] = A::ToWord(y);
        }
      }
      std::array<uint64_t, kTile> overflow;
      for (int k = 0; k < kTile; ++k) overflow[k] = ConversionOverflow(quotient[k]);
      for (int j = 0; j < tables.target_count; ++j) {
        const auto m = ModulusOf(ring.primes[tables.target_primes[j]]);
        for (int k = 0; k < kTile; ++k) {
          out[j * n + at + k] = A::ToWord(
              ConversionTarget<A>([&](int i) { return digits[i][k]; }, overflow[k], tables, j, m));
        }
      }
    }
  }
};

}  // namespace

template <class A>
const LimbKernels& ScalarLimbKernels() {
  static constexpr LimbKernels kKernels = {
      .name = A::kName,
      .forward_ntt = &Loops<A>::ForwardNtt,
      .inverse_ntt = &Loops<A>::InverseNtt,
      .add = &Loops<A>::template Binary<BinaryOp::kAdd>,
      .subtract = &Loops<A>::template Binary<BinaryOp::kSubtract>,
      .multiply = &Loops<A>::template Binary<BinaryOp::kMultiply>,
      .negate = &Loops<A>::Negate,
      .multiply_add = &Loops<A>::MultiplyAdd,
      .multiply_scalar = &Loops<A>::MultiplyScalar,
      .subtract_scale = &Loops<A>::SubtractScale,
      .tensor_product = &Loops<A>::TensorProduct,
      .key_inner_product = &Loops<A>::KeyInnerProductOf,
      .lift_signed = &Loops<A>::LiftSigned,
      .automorphism_coefficient = &Loops<A>::AutomorphismCoefficient,
      .convert_basis = &Loops<A>::ConvertBasis,
  };
  return kKernels;
}

template const LimbKernels& ScalarLimbKernels<math::IntegerArithmetic>();
template const LimbKernels& ScalarLimbKernels<math::FmaArithmetic>();

}  // namespace cipherd::kernels::host
