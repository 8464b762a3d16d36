// Limbs brought to other primes, for all lifts, limbs and polynomials in each of these launches:
//   1. SourceRowKernel        source limbs: NTT domain -> residues after the inverse row pass
//   2. SourceColumnKernel     ... -> y_i = x_i · (Q/q_i)^-1 mod q_i, canonical words
//   3. ConvertKernel          y_i -> residues modulo each target prime, then
//      TargetColumnKernel     ... -> residues after the forward column pass;
//      or ConvertColumnKernel, both in one where a lift has so few source limbs that it is faster
//                             to convert again in every block than to store
//   4. the row pass: TargetRowKernel here, or whoever consumes it.
// Their unfused twins are inverse_ntt, convert_basis, forward_ntt and copy, which
// tests/ckks/device_agreement_test.cc compares.
#include <algorithm>
#include <cstdint>

#include "core/kernels/basis_conversion_body.h"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/lift_arguments.cuh"
#include "core/kernels/cuda/ntt_pass.cuh"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::BasisConversionTables;
using ring::PrimeConstants;

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

// Reads residues, writes residues under way over them.
template <class A, int kUpper, int kThreads>
__global__ void __launch_bounds__(kThreads, kTileThreads / kThreads * kTileBlocks<A>)
    TargetColumnKernel(const __grid_constant__ LiftArguments a) {
  __shared__ typename A::Residue words[TileWords(kThreads)];
  using Tile = ColumnTile<A, kUpper, kThreads>;
  const TargetPlace place(a);
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  WaitForPrecedingWork();
  if (place.is_own()) return;
  uint64_t* const tile = place.out + static_cast<int>(blockIdx.x) * Tile::kColumns;
  Tile(words).Forward(
      place.prime, m,
      [&](typename A::Residue(&x)[kPoints]) {
        CIPHERD_UNROLL
        for (int i = 0; i < kPoints; ++i) {
          x[i] = A::FromBits(tile[(Tile::TopRow(i) << kRowLevels) + Tile::TopColumn(i)]);
        }
      },
      [&](int row, int column, typename A::Residue x) {
        tile[(row << kRowLevels) + column] = A::ToBits(x);
      });
}

// Conversion and TargetColumnKernel in one, of up to kSources source limbs. One leaves registers
// for as many blocks as TargetColumnKernel has.
template <class A, int kUpper, int kThreads, int kSources>
__global__ void __launch_bounds__(kThreads,
                                  kTileThreads / kThreads * (kSources == 1 ? kTileBlocks<A> : 2))
    ConvertColumnKernel(const __grid_constant__ LiftArguments a) {
  __shared__ typename A::Residue words[TileWords(kThreads)];
  using Tile = ColumnTile<A, kUpper, kThreads>;
  const TargetPlace place(a);
  const BasisConversionTables& tables = place.lift.conversion;
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  WaitForPrecedingWork();
  if (place.is_own()) return;
  const uint64_t before = (uint64_t{1} << place.limb) - 1;
  const int target = __popcll(~place.lift.own_limbs & before);
  const int first_column = static_cast<int>(blockIdx.x) * Tile::kColumns;
  const uint64_t* const packed =
      LimbOf(a.packed, place.item, place.lift.first_packed, a.ring.log_n) + first_column;
  uint64_t* const tile = place.out + first_column;
  Tile(words).Forward(
      place.prime, m,
      [&](typename A::Residue(&x)[kPoints]) {
        // All loads first, so that they are on their way together.
        uint64_t y[kPoints][kSources] = {};
        CIPHERD_UNROLL
        for (int s = 0; s < kSources; ++s) {
          if (s >= tables.source_count) break;
          CIPHERD_UNROLL
          for (int i = 0; i < kPoints; ++i) {
            y[i][s] = packed[(static_cast<int64_t>(s) << a.ring.log_n) +
                             (Tile::TopRow(i) << kRowLevels) + Tile::TopColumn(i)];
          }
        }
        CIPHERD_UNROLL
        for (int i = 0; i < kPoints; ++i) {
          double quotient = 0;
          CIPHERD_UNROLL
          for (int s = 0; s < kSources; ++s) {
            if (s >= tables.source_count) break;
            AddToQuotient<A>(A::FromWord(y[i][s]), tables, s, quotient);
          }
          x[i] = BoundedConversionTarget<A, kSources>(y[i], quotient, tables, target, m);
        }
      },
      [&](int row, int column, typename A::Residue x) {
        tile[(row << kRowLevels) + column] = A::ToBits(x);
      });
}

// The row pass of all target limbs, own ones copied from the operand.
template <class A>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks<A>)
    TargetRowKernel(const __grid_constant__ LiftArguments a) {
  __shared__ typename A::Residue words[kRowTileWords];
  const TargetPlace place(a);
  const RowOfTile<A> tile(words);
  const uint32_t row = RowOfThread();
  const int64_t first = RowWord(row, tile.lane());
  uint64_t* const out = place.out + first;
  WaitForPrecedingWork();
  if (place.is_own()) {
    const uint64_t* const in = LimbOf(a.in, place.item, place.limb, a.ring.log_n) + first;
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) out[e * kPoints] = in[e * kPoints];
    return;
  }
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  typename A::Residue x[kPoints];
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) x[e] = A::FromBits(out[e * kPoints]);
  tile.Forward(x, (1u << (a.ring.log_n - kRowLevels)) + row, place.prime, m);
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) out[e * kPoints] = A::ToWord(A::FinishForward(x[e], m));
}

template <class A>
absl::Status ThroughColumns(const LiftArguments& a, Stream& stream) {
  CIPHERD_RETURN_IF_ERROR(LaunchSources<A>(a, stream));
  int sources = 0;
  for (int l = 0; l < a.plan.lift_count; ++l) {
    sources = std::max(sources, a.plan.lifts[l].conversion.source_count);
  }
  // More are faster to convert once.
  constexpr int kMaxColumnSources = 3;
  if (sources > kMaxColumnSources) CIPHERD_RETURN_IF_ERROR(LaunchConversion<A>(sources, a, stream));
  // Conversions make blocks long, so that it pays to spread more of them.
  const LaunchShape target = TileShape(a, a.plan.target.count, a.out.outer_count,
                                       sources > kMaxColumnSources ? kFewBlocks : 4 * kFewBlocks);
  return WithTile(a.ring.log_n - kRowLevels, static_cast<int>(target.threads),
                  [&]<int kUpper, int kThreads>() -> absl::Status {
                    switch (sources) {
                      case 1:
                        return LaunchEarly("convert_columns", stream, target,
                                           ConvertColumnKernel<A, kUpper, kThreads, 1>, a);
                      case 2:
                        return LaunchEarly("convert_columns", stream, target,
                                           ConvertColumnKernel<A, kUpper, kThreads, 2>, a);
                      case 3:
                        return LaunchEarly("convert_columns", stream, target,
                                           ConvertColumnKernel<A, kUpper, kThreads, 3>, a);
                      default:
                        return LaunchEarly("target_columns", stream, target,
                                           TargetColumnKernel<A, kUpper, kThreads>, a);
                    }
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
  const LaunchShape shape = TileShape(a, plan.target.count, out.outer_count);
  return LaunchEarly("target_rows", stream, shape, TargetRowKernel<A>, a);
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
