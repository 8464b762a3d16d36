// Sums of rotations in one launch: a thread takes one entry of one item through all rotations and
// keeps its sums in registers, so that each word of a key and of a factor is read once, and no
// rotation is written. Its unfused twin is key_inner_product, automorphism_ntt, multiply_scalars
// and multiply_add (tests/kernels/rotation_sums_test.cc).
#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/automorphism_body.h"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/launchers.h"
#include "core/kernels/key_inner_product_body.h"
#include "core/kernels/poly_access.h"
#include "core/kernels/rotation_sums_body.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::PrimeConstants;

struct Arguments {
  RotationSums sums;
  int64_t batch;
  int64_t digit_items;   // polynomials of one digit
  int64_t addend_items;  // and of one component of the addend
  ConstPolyView digits;
  ConstPolyView addend;
  PolyView out;
};
static_assert(sizeof(Arguments) + sizeof(RingTables) + sizeof(LimbPrimes) <= 4096);

// Both components of rotation r at one entry, canonical.
struct RotatedWords {
  uint64_t word0;
  uint64_t word1;
};

template <class A>
__device__ RotatedWords RotatedEntry(const RingTables& ring, const Arguments& a, int r,
                                     const EntryPlace& item, const typename A::Modulus& m) {
  const RotationSums::Rotation& rotation = a.sums.rotations[r];
  const uint64_t scalar = a.sums.addend_scalars[item.limb];
  const int64_t addend_item = rotation.addend_item + item.outer;
  KeyInnerProduct<A> sum;
  if (rotation.key_slot == nullptr) {
    if (scalar == 0) return {0, 0};
    sum.Add(scalar, LimbOf(a.addend, addend_item, item.limb, ring.log_n)[item.i],
            LimbOf(a.addend, a.addend_items + addend_item, item.limb, ring.log_n)[item.i]);
    return {sum.Component0(m), sum.Component1(m)};
  }
  const uint32_t source = rotation.galois_element == 1
                              ? item.i
                              : AutomorphismNttSource(item.i, rotation.galois_element, ring.log_n);
  const KeySlot& key = a.sums.key;
  const int64_t component_stride = static_cast<int64_t>(key.key_limb_count) << ring.log_n;
  const uint64_t* const key_entry =
      *rotation.key_slot + (static_cast<int64_t>(key.first_limb + item.limb) << ring.log_n) +
      item.i;
#pragma unroll 3
  for (int d = 0; d < a.sums.digit_count; ++d) {
    const uint64_t* const key_words = key_entry + 2 * key.key_digits[d] * component_stride;
    const int64_t digit = d * a.digit_items + rotation.digit_item + item.outer;
    sum.Add(LimbOf(a.digits, digit, item.limb, ring.log_n)[source], key_words[0],
            key_words[component_stride]);
  }
  if (scalar != 0) {
    sum.AddToComponent0(LimbOf(a.addend, addend_item, item.limb, ring.log_n)[source], scalar);
  }
  return {sum.Component0(m), sum.Component1(m)};
}

// Polynomial of component c of sum s.
__device__ inline int64_t OutPolynomial(const Arguments& a, int c, int s, const EntryPlace& item) {
  return (c * a.sums.sum_count + s) * a.batch + item.outer;
}

// Without factors.
template <class A>
struct PlainSum {
  Arguments a;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& item) const {
    const auto m = ArithmeticTables<A>::Modulus(prime);
    uint64_t* const out0 =
        LimbOf(a.out, OutPolynomial(a, 0, 0, item), item.limb, ring.log_n) + item.i;
    uint64_t* const out1 =
        LimbOf(a.out, OutPolynomial(a, 1, 0, item), item.limb, ring.log_n) + item.i;
    auto sum0 = A::FromWord(a.sums.accumulates ? *out0 : 0);
    auto sum1 = A::FromWord(a.sums.accumulates ? *out1 : 0);
    for (int r = 0; r < a.sums.rotation_count; ++r) {
      const RotatedWords rotated = RotatedEntry<A>(ring, a, r, item, m);
      sum0 = A::Add(sum0, A::FromWord(rotated.word0), m);
      sum1 = A::Add(sum1, A::FromWord(rotated.word1), m);
    }
    *out0 = A::ToWord(sum0);
    *out1 = A::ToWord(sum1);
  }
};

// kSums sums, each kept in registers.
template <class A, int kSums>
struct FactorSums {
  Arguments a;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& item) const {
    const auto m = ArithmeticTables<A>::Modulus(prime);
    const int64_t entry = (static_cast<int64_t>(item.limb) << ring.log_n) + item.i;
    FactorSum<A> sums[kSums];
    if (a.sums.accumulates) {
      CIPHERD_UNROLL
      for (int s = 0; s < kSums; ++s) {
        sums[s].Begin(LimbOf(a.out, OutPolynomial(a, 0, s, item), item.limb, ring.log_n)[item.i],
                      LimbOf(a.out, OutPolynomial(a, 1, s, item), item.limb, ring.log_n)[item.i]);
      }
    }
    for (int r = 0; r < a.sums.rotation_count; ++r) {
      // Under way while the rotation is computed.
      uint64_t factors[kSums];
      CIPHERD_UNROLL
      for (int s = 0; s < kSums; ++s) {
        const RotationSums::Factor& factor = a.sums.factors[s][r];
        factors[s] =
            factor.data == nullptr ? 0 : factor.data[item.outer * factor.item_stride + entry];
      }
      const RotatedWords rotated = RotatedEntry<A>(ring, a, r, item, m);
      CIPHERD_UNROLL
      for (int s = 0; s < kSums; ++s) sums[s].Add(rotated.word0, rotated.word1, factors[s]);
    }
    CIPHERD_UNROLL
    for (int s = 0; s < kSums; ++s) {
      LimbOf(a.out, OutPolynomial(a, 0, s, item), item.limb, ring.log_n)[item.i] =
          sums[s].Component0(m);
      LimbOf(a.out, OutPolynomial(a, 1, s, item), item.limb, ring.log_n)[item.i] =
          sums[s].Component1(m);
    }
  }
};

template <class Op>
absl::Status LaunchSums(const RingTables& ring, const LimbPrimes& limbs, const Arguments& arguments,
                        Stream& stream) {
  return LaunchEntries("rotation_sums", ring, limbs, arguments.batch, Op{arguments}, stream);
}

// Registers for exactly as many sums as there are: fewer of them leave room for more warps.
template <class A, int kSums = 1>
absl::Status LaunchFactorSums(const RingTables& ring, const LimbPrimes& limbs,
                              const Arguments& arguments, Stream& stream) {
  if constexpr (kSums < kMaxRotationSums) {
    if (arguments.sums.sum_count > kSums) {
      return LaunchFactorSums<A, kSums + 1>(ring, limbs, arguments, stream);
    }
  }
  return LaunchSums<FactorSums<A, kSums>>(ring, limbs, arguments, stream);
}

}  // namespace

template <class A>
absl::Status RotationSumsLaunchers<A>::Run(const RingTables& ring, const LimbPrimes& limbs,
                                           const RotationSums& sums, ConstPolyView digits,
                                           ConstPolyView addend, PolyView out, Stream& stream) {
  Arguments arguments = {
      .sums = sums,
      .batch = out.outer_count / (2 * sums.sum_count),
      .digit_items = digits.outer_count / (sums.digit_count > 0 ? sums.digit_count : 1),
      .addend_items = addend.outer_count / 2,
      .digits = digits,
      .addend = addend,
      .out = out};
  if (!sums.has_factors) return LaunchSums<PlainSum<A>>(ring, limbs, arguments, stream);
  return LaunchFactorSums<A>(ring, limbs, arguments, stream);
}

template struct RotationSumsLaunchers<math::IntegerArithmetic>;
template struct RotationSumsLaunchers<math::FmaArithmetic>;

}  // namespace cipherd::kernels::cuda
