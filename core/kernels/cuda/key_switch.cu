// Key switching: lift.cu up to the column pass of the digits, then one launch that takes their row
// pass and sums their products with the key. Its unfused twin is key_inner_product of what
// inverse_ntt, convert_basis and forward_ntt give (tests/ckks/fused_test.cc).
#include <cstdint>

#include "core/kernels/automorphism_body.h"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/lift.h"
#include "core/kernels/cuda/ntt_pass.cuh"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::PrimeConstants;

struct ProductArguments {
  RingTables ring;
  LimbPrimes limbs;
  int digit_count;
  std::array<uint64_t, kMaxFusedDigits> own_limbs;
  uint32_t galois_element;
  int64_t batch;
  ConstPolyView in;
  ConstPolyView digits;
  KeySlot key;
  PolyView out;
};

static_assert(kMaxFusedDigits <= math::FmaArithmetic::kMaxLazyTerms);

// Reads, of one limb and 16 rows of the result: the rows of every digit that the automorphism
// brings there (residues after the column pass; the operand's words where the limb is the digit's
// own), and the key. Keeps the digits in shared memory, in the range of A::FinishForProduct. Writes
// two components, canonical. A row of the result comes from one row of the operand, in another
// order: the upper bits of AutomorphismNttSource depend on the upper bits of the index alone.
template <class A>
__global__ void __launch_bounds__(kTileThreads, 2)
    KeyProductKernel(const __grid_constant__ ProductArguments a) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto* const words = reinterpret_cast<typename A::Residue*>(shared_bytes);
  const int log_n = a.ring.log_n;
  const auto limb = static_cast<int>(blockIdx.y);
  const auto item = static_cast<int64_t>(blockIdx.z);
  const PrimeConstants& prime = a.ring.primes[a.limbs.prime[limb]];
  const auto m = ArithmeticTables<A>::Modulus(prime);
  const bool is_identity = a.galois_element == 1;

  const uint32_t row = blockIdx.x * kPoints + RowOfTile<A>::row();
  const int lane = RowOfTile<A>::lane();
  const uint32_t source_row =
      is_identity ? row
                  : AutomorphismNttSource(row << kRowLevels, a.galois_element, log_n) >> kRowLevels;
  for (int d = 0; d < a.digit_count; ++d) {
    const RowOfTile<A> tile(words + d * kRowTileWords);
    const uint32_t first = (source_row << kRowLevels) + lane;
    typename A::Residue x[kPoints];
    if ((a.own_limbs[d] >> limb & 1) != 0) {
      const uint64_t* const in = LimbOf(a.in, item, limb, log_n);
      CIPHERD_UNROLL
      for (int e = 0; e < kPoints; ++e) x[e] = A::FromWord(in[first + e * kPoints]);
    } else {
      const uint64_t* const in = LimbOf(a.digits, d * a.batch + item, limb, log_n);
      CIPHERD_UNROLL
      for (int e = 0; e < kPoints; ++e) x[e] = A::FromBits(in[first + e * kPoints]);
      tile.Forward(x, (1u << (log_n - kRowLevels)) + source_row, prime, m);
    }
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) x[e] = A::FinishForProduct(x[e], m);
    tile.Publish(x);
  }

  const int64_t component_stride = static_cast<int64_t>(a.key.key_limb_count) << log_n;
  const uint64_t* const key =
      *a.key.slot + (static_cast<int64_t>(a.key.first_limb + limb) << log_n);
  uint64_t* const out0 = LimbOf(a.out, item, limb, log_n);
  uint64_t* const out1 = LimbOf(a.out, a.batch + item, limb, log_n);
#pragma unroll 4
  for (int e = 0; e < kPoints; ++e) {
    const uint32_t i = (row << kRowLevels) + e * kPoints + lane;
    const uint32_t source = is_identity ? i : AutomorphismNttSource(i, a.galois_element, log_n);
    const int source_word = static_cast<int>(source & ((1u << kRowLevels) - 1));
    typename A::LazySum sum0{};
    typename A::LazySum sum1{};
#pragma unroll 3
    for (int d = 0; d < a.digit_count; ++d) {
      const uint64_t* const key_words = key + 2 * a.key.key_digits[d] * component_stride + i;
      const auto x = RowOfTile<A>(words + d * kRowTileWords).word(source_word);
      A::AddToLazySum(x, key_words[0], sum0, m);
      A::AddToLazySum(x, key_words[component_stride], sum1, m);
    }
    out0[i] = A::ToWord(A::ReduceLazySum(sum0, m));
    out1[i] = A::ToWord(A::ReduceLazySum(sum1, m));
  }
}

}  // namespace

template <class A>
absl::Status FusedLaunchers<A>::SwitchKey(const RingTables& ring, const LiftPlan& plan,
                                          uint32_t galois_element, ConstPolyView in,
                                          const KeySlot& key, PolyView packed, PolyView digits,
                                          PolyView out, Stream& stream) {
  CIPHERD_RETURN_IF_ERROR(
      LiftLaunches<A>::ThroughColumns(ring, plan, {}, in, packed, digits, stream));
  ProductArguments arguments = {.ring = ring,
                                .limbs = plan.target,
                                .digit_count = plan.lift_count,
                                .own_limbs = {},
                                .galois_element = galois_element,
                                .batch = packed.outer_count,
                                .in = in,
                                .digits = digits,
                                .key = key,
                                .out = out};
  for (int d = 0; d < plan.lift_count; ++d) arguments.own_limbs[d] = plan.lifts[d].own_limbs;
  const LaunchShape shape = {
      dim3(1u << (ring.log_n - kTileLog), static_cast<unsigned>(plan.target.count),
           static_cast<unsigned>(packed.outer_count)),
      kTileThreads, plan.lift_count * kRowTileWords * sizeof(typename A::Residue)};
  static_assert(kMaxFusedDigits * kRowTileWords * sizeof(typename A::Residue) <= 227 * 1024);
  CIPHERD_RETURN_IF_ERROR(
      AllowSharedBytes("key_product", stream, KeyProductKernel<A>,
                       kMaxFusedDigits * kRowTileWords * sizeof(typename A::Residue)));
  return Launch("key_product", stream, shape, KeyProductKernel<A>, arguments);
}

template absl::Status FusedLaunchers<math::IntegerArithmetic>::SwitchKey(
    const RingTables&, const LiftPlan&, uint32_t, ConstPolyView, const KeySlot&, PolyView, PolyView,
    PolyView, Stream&);
template absl::Status FusedLaunchers<math::FmaArithmetic>::SwitchKey(const RingTables&,
                                                                     const LiftPlan&, uint32_t,
                                                                     ConstPolyView, const KeySlot&,
                                                                     PolyView, PolyView, PolyView,
                                                                     Stream&);

}  // namespace cipherd::kernels::cuda
