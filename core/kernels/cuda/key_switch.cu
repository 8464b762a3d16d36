// Key switching: lift.cu up to the column pass of the digits, then one launch that takes their row
// pass and sums their products with the key. Its unfused twin is key_inner_product of what
// inverse_ntt, convert_basis and forward_ntt give (tests/ckks/device_agreement_test.cc).
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
  int row_count;
  std::array<uint64_t, kMaxFusedDigits> own_limbs;
  uint32_t galois_element;
  int64_t batch;
  ConstPolyView in;
  ConstPolyView digits;
  KeySlot key;
  PolyView out;
};

static_assert(kMaxFusedDigits <= math::FmaArithmetic::kMaxLazyTerms);

// Rows of digits in a block: kMaxFusedDigits, or fewer digits of more rows each (RowsOfBlock).
constexpr int kMaxDigitRows = kMaxFusedDigits;
constexpr int kMaxProductThreads = kMaxDigitRows * kPoints;
// Of a multiprocessor: what the shared memory of three digits leaves room for.
constexpr int kProductBlocks = 8;
constexpr int kRowWords = 1 << kRowLevels;

// Copies 16 bytes from global to shared memory, on its way until WaitForCopies.
__device__ inline void CopyAsync(void* shared, const void* global) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(address), "l"(global));
}
// Waits for the copies of this thread.
__device__ inline void WaitForCopies() { asm volatile("cp.async.wait_all;" : : : "memory"); }

// Of one limb, a.row_count rows of the result. Reads the rows of every digit that the automorphism
// brings there (residues after the column pass; the operand's words where the limb is the digit's
// own), and the key. Half a warp copies one row of either component of one digit of the key to
// shared memory, and transforms the digit's row meanwhile, which it leaves there too, in the range
// of A::FinishForProduct; then all threads sum the products.
// Writes two components, canonical. A row of the result comes from one row of the operand, in
// another order: the upper bits of AutomorphismNttSource depend on the upper bits of the index
// alone.
template <class A>
__global__ void __launch_bounds__(kMaxProductThreads, kProductBlocks)
    KeyProductKernel(const __grid_constant__ ProductArguments a) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto* const words = reinterpret_cast<typename A::Residue*>(shared_bytes);
  auto* const keys = reinterpret_cast<uint64_t*>(words + a.digit_count * a.row_count * kRowStride);
  const int log_n = a.ring.log_n;
  const auto limb = static_cast<int>(blockIdx.y);
  const auto item = static_cast<int64_t>(blockIdx.z);
  const PrimeConstants& prime = a.ring.primes[a.limbs.prime[limb]];
  const auto m = ArithmeticTables<A>::Modulus(prime);
  const bool is_identity = a.galois_element == 1;
  const uint32_t first_row = blockIdx.x * a.row_count;
  WaitForPrecedingWork();

  const int64_t component_stride = static_cast<int64_t>(a.key.key_limb_count) << log_n;
  const uint64_t* const key = *a.key.slot +
                              (static_cast<int64_t>(a.key.first_limb + limb) << log_n) +
                              (static_cast<int64_t>(first_row) << kRowLevels);
  {
    const RowOfTile<A> tile(words);
    const int d = tile.row() / a.row_count;
    const uint32_t row = first_row + tile.row() % a.row_count;
    // Rows (digit, component, row) of the key.
    const int64_t key_row = 2 * a.key.key_digits[d] * component_stride +
                            (static_cast<int64_t>(tile.row() % a.row_count) << kRowLevels);
    CIPHERD_UNROLL
    for (int c = 0; c < 2; ++c) {
      uint64_t* const copy =
          keys + ((2 * d + c) * a.row_count + tile.row() % a.row_count) * kRowWords;
      CIPHERD_UNROLL
      for (int e = 0; e < kRowWords; e += 2 * kPoints) {
        const int word = e + 2 * tile.lane();
        CopyAsync(copy + word, key + key_row + c * component_stride + word);
      }
    }

    const uint32_t source_row =
        is_identity
            ? row
            : AutomorphismNttSource(row << kRowLevels, a.galois_element, log_n) >> kRowLevels;
    const bool is_own = (a.own_limbs[d] >> limb & 1) != 0;
    const uint64_t* const in = is_own ? LimbOf(a.in, item, limb, log_n)
                                      : LimbOf(a.digits, d * a.batch + item, limb, log_n);
    const uint64_t* const source = in + RowWord(source_row, tile.lane());
    typename A::Residue x[kPoints];
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) {
      const uint64_t word = source[e * kPoints];
      x[e] = is_own ? A::FromWord(word) : A::FromBits(word);
    }
    // The halves of a warp may differ here; each exchanges within itself only.
    if (!is_own) tile.Forward(x, (1u << (log_n - kRowLevels)) + source_row, prime, m);
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) x[e] = A::FinishForProduct(x[e], m);
    tile.Publish(x);
  }
  WaitForCopies();
  __syncthreads();

  const uint32_t first = first_row << kRowLevels;
  uint64_t* const out0 = LimbOf(a.out, item, limb, log_n) + first;
  uint64_t* const out1 = LimbOf(a.out, a.batch + item, limb, log_n) + first;
#pragma unroll 2
  for (uint32_t w = threadIdx.x; w < a.row_count * kRowWords; w += blockDim.x) {
    const uint32_t source =
        is_identity ? w : AutomorphismNttSource(first + w, a.galois_element, log_n);
    const typename A::Residue* const digit_row =
        words + (w >> kRowLevels) * kRowStride + PaddedIndex(source & (kRowWords - 1));
    typename A::LazySum sum0{};
    typename A::LazySum sum1{};
#pragma unroll 3
    for (int d = 0; d < a.digit_count; ++d) {
      const uint64_t* const key_word = keys + 2 * d * a.row_count * kRowWords + w;
      const auto x = digit_row[d * a.row_count * kRowStride];
      A::AddToLazySum(x, key_word[0], sum0, m);
      A::AddToLazySum(x, key_word[a.row_count * kRowWords], sum1, m);
    }
    out0[w] = A::ToWord(A::ReduceLazySum(sum0, m));
    out1[w] = A::ToWord(A::ReduceLazySum(sum1, m));
  }
}

// For so many rows of digits, and twice as many of the key.
template <class A>
constexpr size_t SharedBytes(int rows) {
  return rows * (kRowStride * sizeof(typename A::Residue) + 2 * kRowWords * sizeof(uint64_t));
}

// Rows of a block: as few as make more than a warp, so that many blocks fit a multiprocessor, and
// the copies of some overlap with the sums of others.
int RowsOfBlock(int digit_count) {
  if (digit_count > 2) return 1;
  return digit_count == 2 ? 2 : 4;
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
  const int rows = RowsOfBlock(plan.lift_count);
  arguments.row_count = rows;
  const LaunchShape shape = {
      dim3((1u << (ring.log_n - kRowLevels)) / rows, static_cast<unsigned>(plan.target.count),
           static_cast<unsigned>(packed.outer_count)),
      static_cast<unsigned>(plan.lift_count * rows * kPoints),
      SharedBytes<A>(plan.lift_count * rows)};
  CIPHERD_RETURN_IF_ERROR(
      AllowSharedBytes("key_product", stream, KeyProductKernel<A>, SharedBytes<A>(kMaxDigitRows)));
  return LaunchEarly("key_product", stream, shape, KeyProductKernel<A>, arguments);
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
