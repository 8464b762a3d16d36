// Limbs brought to other primes, for all lifts, limbs and polynomials in each of these launches:
//   1. SourceRowKernel        source limbs: NTT domain -> residues after the inverse row pass
//   2. SourceColumnKernel     ... -> y_i = x_i · (Q/q_i)^-1 mod q_i, canonical words
//   3. ConvertKernel          y_i -> residues modulo each target prime, then
//      TargetColumnKernel     ... -> residues after the forward column pass;
//      or ConvertColumnKernel, both in one where a lift has so few source limbs that it is faster
//                             to convert again in every block than to store
//   4. the row pass: TargetRowKernel here, or whoever consumes it.
// Their unfused twins are inverse_ntt, convert_basis, forward_ntt and copy, which
// tests/ckks/fused_test.cc composes.
#include <algorithm>
#include <cstdint>

#include "core/kernels/automorphism_body.h"
#include "core/kernels/basis_conversion_body.h"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/lift.h"
#include "core/kernels/cuda/ntt_pass.cuh"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::BasisConversionTables;
using ring::PrimeConstants;

struct LiftArguments {
  RingTables ring;
  LiftPlan plan;
  HeadAddend head;
  int64_t batch;
  ConstPolyView in;
  PolyView packed;
  PolyView out;
};

// A tile of packed limb blockIdx.y of polynomial blockIdx.z.
struct SourcePlace {
  __device__ explicit SourcePlace(const LiftArguments& a)
      : limb(static_cast<int>(blockIdx.y)),
        prime(a.ring.primes[a.plan.packed.prime[limb]]),
        packed(LimbOf(a.packed, blockIdx.z, limb, a.ring.log_n)) {}
  int limb;
  const PrimeConstants& prime;
  uint64_t* packed;
};

// A tile of target limb blockIdx.y of lift l, item o, blockIdx.z = l · batch + o.
struct TargetPlace {
  __device__ explicit TargetPlace(const LiftArguments& a)
      : limb(static_cast<int>(blockIdx.y)),
        lift(a.plan.lifts[blockIdx.z / static_cast<uint32_t>(a.batch)]),
        item(blockIdx.z % static_cast<uint32_t>(a.batch)),
        prime(a.ring.primes[a.plan.target.prime[limb]]),
        out(LimbOf(a.out, blockIdx.z, limb, a.ring.log_n)) {}
  __device__ bool is_own() const { return (lift.own_limbs >> limb & 1) != 0; }
  int limb;
  const LimbLift& lift;
  int64_t item;
  const PrimeConstants& prime;
  uint64_t* out;
};

template <class A>
__global__ void __launch_bounds__(kTileThreads, 2)
    SourceRowKernel(const __grid_constant__ LiftArguments a) {
  __shared__ typename A::Residue words[kRowTileWords];
  const SourcePlace place(a);
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  const RowOfTile<A> tile(words);
  const int log_n = a.ring.log_n;
  const uint32_t row = blockIdx.x * kPoints + tile.row();
  const uint32_t first = (row << kRowLevels) + tile.lane();
  const uint64_t* const in = LimbOf(a.in, blockIdx.z, a.plan.source_limb[place.limb], log_n);
  typename A::Residue x[kPoints];
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) x[e] = A::FromWord(in[first + e * kPoints]);
  if (place.limb < a.head.head_count && blockIdx.z < a.head.addend.poly.outer_count) {
    const DropAddend& addend = a.head.addend;
    const uint64_t* const poly = addend.poly.data + blockIdx.z * addend.poly.outer_stride +
                                 (static_cast<int64_t>(place.limb) << log_n);
    const auto factor =
        A::MakeFactor(a.head.factor.value[place.limb], a.head.factor.shoup[place.limb], m);
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) {
      const uint32_t i = first + e * kPoints;
      const uint32_t source =
          addend.galois_element == 1 ? i : AutomorphismNttSource(i, addend.galois_element, log_n);
      x[e] = A::Add(x[e], A::MultiplyFactor(A::FromWord(poly[source]), factor, m), m);
    }
  }
  tile.Inverse(x, (1u << (log_n - kRowLevels)) + row, place.prime, m);
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) place.packed[first + e * kPoints] = A::ToBits(x[e]);
}

template <class A, int kUpper>
__global__ void __launch_bounds__(kTileThreads, 2)
    SourceColumnKernel(const __grid_constant__ LiftArguments a) {
  __shared__ typename A::Residue words[kColumnTileWords];
  using Tile = ColumnTile<A, kUpper>;
  const SourcePlace place(a);
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  int lift = a.plan.lift_count - 1;
  while (a.plan.lifts[lift].first_packed > place.limb) --lift;
  const BasisConversionTables& conversion = a.plan.lifts[lift].conversion;
  const int i = place.limb - a.plan.lifts[lift].first_packed;
  const int first_column = static_cast<int>(blockIdx.x) * Tile::kColumns;
  Tile(words).Inverse(
      place.prime, m,
      [&](int row, int column) {
        return A::FromBits(place.packed[(row << kRowLevels) + first_column + column]);
      },
      [&](int row, int column, typename A::Residue x) {
        place.packed[(row << kRowLevels) + first_column + column] =
            A::ToWord(ConversionDigit<A>(x, conversion, i, m));
      });
}

// Target limb of a lift by number of its conversion: the `number`-th that is not the lift's own.
__device__ int ConvertedLimb(const LimbLift& lift, int number) {
  int limb = 0;
  for (uint64_t own = lift.own_limbs;; own >>= 1, ++limb) {
    if ((own & 1) == 0 && number-- == 0) return limb;
  }
}

constexpr int kConvertThreads = 128;
// Coefficients of a thread, kConvertThreads apart.
constexpr int kConvertPoints = 2;
// Targets of a block.
constexpr int kConvertTargets = 12;

// Converts up to kSources residues y_i of each coefficient to a run of targets. The constants of a
// block lie in shared memory, 0 for sources that there are not.
template <class A, int kSources>
__global__ void __launch_bounds__(kConvertThreads)
    ConvertKernel(const __grid_constant__ LiftArguments a) {
  __shared__ uint64_t hats[kConvertTargets][kSources];
  __shared__ uint64_t overflow_factors[kConvertTargets];
  __shared__ int limbs[kConvertTargets];
  const int log_n = a.ring.log_n;
  const LimbLift& lift = a.plan.lifts[blockIdx.z / static_cast<uint32_t>(a.batch)];
  const int64_t item = blockIdx.z % static_cast<uint32_t>(a.batch);
  const BasisConversionTables& tables = lift.conversion;
  const int begin = static_cast<int>(blockIdx.y) * kConvertTargets;
  const int count = min(kConvertTargets, tables.target_count - begin);
  if (count <= 0) return;
  const int sources = tables.source_count;
  const int thread = static_cast<int>(threadIdx.x);
  for (int w = thread; w < count * kSources; w += kConvertThreads) {
    const int i = w % kSources;
    hats[w / kSources][i] = i < sources ? tables.hat[(begin + w / kSources) * sources + i] : 0;
  }
  if (thread < count) {
    const PrimeConstants& prime = a.ring.primes[tables.target_primes[begin + thread]];
    overflow_factors[thread] = prime.q - tables.source_product[begin + thread];
    limbs[thread] = ConvertedLimb(lift, begin + thread);
  }
  __syncthreads();

  const uint32_t first = blockIdx.x * (kConvertThreads * kConvertPoints) + threadIdx.x;
  uint64_t y[kConvertPoints][kSources];
  double quotient[kConvertPoints] = {};
  CIPHERD_UNROLL
  for (int i = 0; i < kSources; ++i) {
    const uint64_t* const packed = LimbOf(a.packed, item, lift.first_packed + i, log_n) + first;
    CIPHERD_UNROLL
    for (int k = 0; k < kConvertPoints; ++k) {
      y[k][i] = i < sources ? packed[k * kConvertThreads] : 0;
    }
  }
  CIPHERD_UNROLL
  for (int i = 0; i < kSources; ++i) {
    if (i >= sources) break;
    CIPHERD_UNROLL
    for (int k = 0; k < kConvertPoints; ++k) {
      AddToQuotient<A>(A::FromWord(y[k][i]), tables, i, quotient[k]);
    }
  }
  uint64_t overflow[kConvertPoints];
  CIPHERD_UNROLL
  for (int k = 0; k < kConvertPoints; ++k) overflow[k] = ConversionOverflow(quotient[k]);
  for (int j = 0; j < count; ++j) {
    const auto m = ArithmeticTables<A>::Modulus(a.ring.primes[a.plan.target.prime[limbs[j]]]);
    typename A::ProductSum sum[kConvertPoints] = {};
    CIPHERD_UNROLL
    for (int i = 0; i < kSources; ++i) {
      const uint64_t hat = hats[j][i];
      CIPHERD_UNROLL
      for (int k = 0; k < kConvertPoints; ++k) A::AddWordsToSum(y[k][i], hat, sum[k]);
    }
    uint64_t* const out = LimbOf(a.out, blockIdx.z, limbs[j], log_n) + first;
    CIPHERD_UNROLL
    for (int k = 0; k < kConvertPoints; ++k) {
      A::AddWordsToSum(overflow[k], overflow_factors[j], sum[k]);
      out[k * kConvertThreads] = A::ToBits(A::ReduceSum(sum[k], m));
    }
  }
}

template <class A, int kUpper>
__global__ void __launch_bounds__(kTileThreads, 2)
    TargetColumnKernel(const __grid_constant__ LiftArguments a) {
  __shared__ typename A::Residue words[kColumnTileWords];
  using Tile = ColumnTile<A, kUpper>;
  const TargetPlace place(a);
  if (place.is_own()) return;
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  uint64_t* const tile = place.out + static_cast<int>(blockIdx.x) * Tile::kColumns;
  Tile(words).Forward(
      place.prime, m,
      [&](int row, int column) { return A::FromBits(tile[(row << kRowLevels) + column]); },
      [&](int row, int column, typename A::Residue x) {
        tile[(row << kRowLevels) + column] = A::ToBits(x);
      });
}

// ConvertKernel and TargetColumnKernel in one, of up to kSources source limbs.
template <class A, int kUpper, int kSources>
__global__ void __launch_bounds__(kTileThreads, 2)
    ConvertColumnKernel(const __grid_constant__ LiftArguments a) {
  __shared__ typename A::Residue words[kColumnTileWords];
  using Tile = ColumnTile<A, kUpper>;
  const TargetPlace place(a);
  const BasisConversionTables& tables = place.lift.conversion;
  if (place.is_own()) return;
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  const uint64_t before = (uint64_t{1} << place.limb) - 1;
  const int target = __popcll(~place.lift.own_limbs & before);
  const int first_column = static_cast<int>(blockIdx.x) * Tile::kColumns;
  const uint64_t* const packed =
      LimbOf(a.packed, place.item, place.lift.first_packed, a.ring.log_n) + first_column;
  uint64_t* const tile = place.out + first_column;
  Tile(words).Forward(
      place.prime, m,
      [&](int row, int column) {
        uint64_t y[kSources];
        double quotient = 0;
        CIPHERD_UNROLL
        for (int i = 0; i < kSources; ++i) {
          if (i >= tables.source_count) break;
          y[i] = packed[(static_cast<int64_t>(i) << a.ring.log_n) + (row << kRowLevels) + column];
          AddToQuotient<A>(A::FromWord(y[i]), tables, i, quotient);
        }
        return BoundedConversionTarget<A, kSources>(y, ConversionOverflow(quotient), tables, target,
                                                    m);
      },
      [&](int row, int column, typename A::Residue x) {
        tile[(row << kRowLevels) + column] = A::ToBits(x);
      });
}

// The row pass of all target limbs, own ones copied from the operand.
template <class A>
__global__ void __launch_bounds__(kTileThreads, 2)
    TargetRowKernel(const __grid_constant__ LiftArguments a) {
  __shared__ typename A::Residue words[kRowTileWords];
  const TargetPlace place(a);
  const RowOfTile<A> tile(words);
  const uint32_t row = blockIdx.x * kPoints + tile.row();
  const uint32_t first = (row << kRowLevels) + tile.lane();
  if (place.is_own()) {
    const uint64_t* const in = LimbOf(a.in, place.item, place.limb, a.ring.log_n);
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) place.out[first + e * kPoints] = in[first + e * kPoints];
    return;
  }
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  typename A::Residue x[kPoints];
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) x[e] = A::FromBits(place.out[first + e * kPoints]);
  tile.Forward(x, (1u << (a.ring.log_n - kRowLevels)) + row, place.prime, m);
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) {
    place.out[first + e * kPoints] = A::ToWord(A::FinishForward(x[e], m));
  }
}

dim3 TileGrid(const LiftArguments& a, int limb_count, int64_t outer_count) {
  return dim3(1u << (a.ring.log_n - kTileLog), static_cast<unsigned>(limb_count),
              static_cast<unsigned>(outer_count));
}

template <class A, int kSources>
absl::Status LaunchConvert(const LiftArguments& a, Stream& stream) {
  const int groups = (a.plan.target.count + kConvertTargets - 1) / kConvertTargets;
  const LaunchShape shape = {
      dim3((1u << a.ring.log_n) / (kConvertThreads * kConvertPoints), static_cast<unsigned>(groups),
           static_cast<unsigned>(a.out.outer_count)),
      kConvertThreads};
  return Launch("convert", stream, shape, ConvertKernel<A, kSources>, a);
}

// With the least instance that has room for `sources`.
template <class A>
absl::Status LaunchConvertOf(int sources, const LiftArguments& a, Stream& stream) {
  if (sources <= 4) return LaunchConvert<A, 4>(a, stream);
  if (sources <= 6) return LaunchConvert<A, 6>(a, stream);
  if (sources <= 8) return LaunchConvert<A, 8>(a, stream);
  if (sources <= 12) return LaunchConvert<A, 12>(a, stream);
  return LaunchConvert<A, kMaxFusedSources>(a, stream);
}

template <class A, int kUpper, int kSources>
absl::Status LaunchConvertColumns(const LiftArguments& a, Stream& stream) {
  const LaunchShape shape = {TileGrid(a, a.plan.target.count, a.out.outer_count), kTileThreads};
  return Launch("convert_columns", stream, shape, ConvertColumnKernel<A, kUpper, kSources>, a);
}

template <class A>
absl::Status ThroughColumns(const LiftArguments& a, Stream& stream) {
  const LaunchShape source = {TileGrid(a, a.plan.packed.count, a.packed.outer_count), kTileThreads};
  CIPHERD_RETURN_IF_ERROR(Launch("source_rows", stream, source, SourceRowKernel<A>, a));
  int most_sources = 0;
  for (int l = 0; l < a.plan.lift_count; ++l) {
    most_sources = std::max(most_sources, a.plan.lifts[l].conversion.source_count);
  }
  return WithUpper(a.ring.log_n - kRowLevels, [&](auto upper) -> absl::Status {
    constexpr int kUpper = decltype(upper)::value;
    CIPHERD_RETURN_IF_ERROR(
        Launch("source_columns", stream, source, SourceColumnKernel<A, kUpper>, a));
    if (most_sources == 1) return LaunchConvertColumns<A, kUpper, 1>(a, stream);
    if (most_sources == 2) return LaunchConvertColumns<A, kUpper, 2>(a, stream);
    if (most_sources == 3) return LaunchConvertColumns<A, kUpper, 3>(a, stream);
    CIPHERD_RETURN_IF_ERROR(LaunchConvertOf<A>(most_sources, a, stream));
    const LaunchShape target = {TileGrid(a, a.plan.target.count, a.out.outer_count), kTileThreads};
    return Launch("target_columns", stream, target, TargetColumnKernel<A, kUpper>, a);
  });
}

LiftArguments ArgumentsOf(const RingTables& ring, const LiftPlan& plan, const HeadAddend& head,
                          ConstPolyView in, PolyView packed, PolyView out) {
  return {ring, plan, head, packed.outer_count, in, packed, out};
}

}  // namespace

template <class A>
absl::Status LiftLaunches<A>::ThroughColumns(const RingTables& ring, const LiftPlan& plan,
                                             const HeadAddend& head, ConstPolyView in,
                                             PolyView packed, PolyView out, Stream& stream) {
  return cuda::ThroughColumns<A>(ArgumentsOf(ring, plan, head, in, packed, out), stream);
}

template <class A>
absl::Status FusedLaunchers<A>::Lift(const RingTables& ring, const LiftPlan& plan, ConstPolyView in,
                                     PolyView packed, PolyView out, Stream& stream) {
  const LiftArguments a = ArgumentsOf(ring, plan, {}, in, packed, out);
  CIPHERD_RETURN_IF_ERROR(cuda::ThroughColumns<A>(a, stream));
  const LaunchShape shape = {TileGrid(a, plan.target.count, out.outer_count), kTileThreads};
  return Launch("target_rows", stream, shape, TargetRowKernel<A>, a);
}

template struct LiftLaunches<math::IntegerArithmetic>;
template struct LiftLaunches<math::FmaArithmetic>;
template absl::Status FusedLaunchers<math::IntegerArithmetic>::Lift(const RingTables&,
                                                                    const LiftPlan&, ConstPolyView,
                                                                    PolyView, PolyView, Stream&);
template absl::Status FusedLaunchers<math::FmaArithmetic>::Lift(const RingTables&, const LiftPlan&,
                                                                ConstPolyView, PolyView, PolyView,
                                                                Stream&);

}  // namespace cipherd::kernels::cuda
