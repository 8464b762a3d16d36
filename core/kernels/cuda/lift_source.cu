// The source limbs of a lift: steps 1 and 2 of lift.cu, the inverse transform and the first
// multiplication of the basis conversion. Unfused: inverse_ntt, and the beginning of convert_basis.
#include <cstdint>

#include "core/kernels/automorphism_body.h"
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

// Reads canonical words of the operand, and of an addend at the head's limbs; writes residues under
// way.
template <class A>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks<A>)
    SourceRowKernel(const __grid_constant__ LiftArguments a) {
  __shared__ typename A::Residue words[kRowTileWords];
  const SourcePlace place(a);
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  WaitForPrecedingWork();
  const RowOfTile<A> tile(words);
  const int log_n = a.ring.log_n;
  const uint32_t row = RowOfThread();
  const int64_t first = RowWord(row, tile.lane());
  const uint64_t* const in =
      LimbOf(a.in, blockIdx.z, a.plan.source_limb[place.limb], log_n) + first;
  uint64_t* const packed = place.packed + first;
  typename A::Residue x[kPoints];
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) x[e] = A::FromWord(in[e * kPoints]);
  if (place.limb < a.head.head_count && blockIdx.z < a.head.addend.poly.outer_count) {
    const DropAddend& addend = a.head.addend;
    const uint64_t* const poly = addend.poly.data + blockIdx.z * addend.poly.outer_stride +
                                 (static_cast<int64_t>(place.limb) << log_n);
    const auto factor =
        A::MakeFactor(a.head.factor.value[place.limb], a.head.factor.shoup[place.limb], m);
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) {
      const uint32_t i = static_cast<uint32_t>(first) + e * kPoints;
      const uint32_t source =
          addend.galois_element == 1 ? i : AutomorphismNttSource(i, addend.galois_element, log_n);
      x[e] = A::Add(x[e], A::MultiplyFactor(A::FromWord(poly[source]), factor, m), m);
    }
  }
  tile.Inverse(x, (1u << (log_n - kRowLevels)) + row, place.prime, m);
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) packed[e * kPoints] = A::ToBits(x[e]);
}

// Reads residues under way, writes y_i as canonical words over them.
template <class A, int kUpper, int kThreads>
__global__ void __launch_bounds__(kThreads, kTileThreads / kThreads * kTileBlocks<A>)
    SourceColumnKernel(const __grid_constant__ LiftArguments a) {
  __shared__ typename A::Residue words[TileWords(kThreads)];
  using Tile = ColumnTile<A, kUpper, kThreads>;
  const SourcePlace place(a);
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  WaitForPrecedingWork();
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

}  // namespace

template <class A>
absl::Status LaunchSources(const LiftArguments& a, Stream& stream) {
  const LaunchShape shape = TileShape(a, a.plan.packed.count, a.packed.outer_count);
  CIPHERD_RETURN_IF_ERROR(LaunchEarly("source_rows", stream, shape, SourceRowKernel<A>, a));
  return WithTile(a.ring.log_n - kRowLevels, static_cast<int>(shape.threads),
                  [&]<int kUpper, int kThreads>() -> absl::Status {
                    return LaunchEarly("source_columns", stream, shape,
                                       SourceColumnKernel<A, kUpper, kThreads>, a);
                  });
}

template absl::Status LaunchSources<math::IntegerArithmetic>(const LiftArguments&, Stream&);
template absl::Status LaunchSources<math::FmaArithmetic>(const LiftArguments&, Stream&);

}  // namespace cipherd::kernels::cuda
