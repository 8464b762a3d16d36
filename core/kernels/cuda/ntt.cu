// Transforms in two passes (ntt_pass.cuh) for N = 2^13 to 2^16; ntt_any_degree.cu has the others.
#include <cstdint>

#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/launchers.h"
#include "core/kernels/cuda/ntt_any_degree.h"
#include "core/kernels/cuda/ntt_pass.cuh"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::PrimeConstants;

struct PassArguments {
  RingTables ring;
  LimbPrimes limbs;
  ConstPolyView in;
  PolyView out;
};

// What a block works on: a tile of one limb.
struct Place {
  __device__ explicit Place(const PassArguments& a)
      : limb(static_cast<int>(blockIdx.y)),
        prime(a.ring.primes[a.limbs.prime[limb]]),
        in(LimbOf(a.in, blockIdx.z, limb, a.ring.log_n)),
        out(LimbOf(a.out, blockIdx.z, limb, a.ring.log_n)) {}

  int limb;
  const PrimeConstants& prime;
  const uint64_t* in;
  uint64_t* out;
};

// Reads canonical words, writes residues under way. In place allowed.
template <class A, int kUpper, int kThreads>
__global__ void __launch_bounds__(kThreads, kTileThreads / kThreads * kTileBlocks<A>)
    ForwardColumnKernel(const __grid_constant__ PassArguments arguments) {
  __shared__ typename A::Residue words[TileWords(kThreads)];
  using Tile = ColumnTile<A, kUpper, kThreads>;
  const Place place(arguments);
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  WaitForPrecedingWork();
  const int first_column = static_cast<int>(blockIdx.x) * Tile::kColumns;
  Tile(words).Forward(
      place.prime, m,
      [&](typename A::Residue(&x)[kPoints]) {
        CIPHERD_UNROLL
        for (int i = 0; i < kPoints; ++i) {
          x[i] = A::FromWord(
              place.in[(Tile::TopRow(i) << kRowLevels) + first_column + Tile::TopColumn(i)]);
        }
      },
      [&](int row, int column, typename A::Residue x) {
        place.out[(row << kRowLevels) + first_column + column] = A::ToBits(x);
      });
}

// Reads residues under way, writes canonical words. In place allowed.
template <class A>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks<A>)
    ForwardRowKernel(const __grid_constant__ PassArguments arguments) {
  __shared__ typename A::Residue words[kRowTileWords];
  const Place place(arguments);
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  WaitForPrecedingWork();
  const RowOfTile<A> tile(words);
  const uint32_t row = RowOfThread();
  const int64_t first = RowWord(row, tile.lane());
  const uint64_t* const in = place.in + first;
  uint64_t* const out = place.out + first;
  typename A::Residue x[kPoints];
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) x[e] = A::FromBits(in[e * kPoints]);
  tile.Forward(x, (1u << (arguments.ring.log_n - kRowLevels)) + row, place.prime, m);
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) {
    out[e * kPoints] = A::ToWord(A::FinishForward(x[e], m));
  }
}

// Reads canonical words, writes residues under way. In place allowed.
template <class A>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks<A>)
    InverseRowKernel(const __grid_constant__ PassArguments arguments) {
  __shared__ typename A::Residue words[kRowTileWords];
  const Place place(arguments);
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  WaitForPrecedingWork();
  const RowOfTile<A> tile(words);
  const uint32_t row = RowOfThread();
  const int64_t first = RowWord(row, tile.lane());
  const uint64_t* const in = place.in + first;
  uint64_t* const out = place.out + first;
  typename A::Residue x[kPoints];
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) x[e] = A::FromWord(in[e * kPoints]);
  tile.Inverse(x, (1u << (arguments.ring.log_n - kRowLevels)) + row, place.prime, m);
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) out[e * kPoints] = A::ToBits(x[e]);
}

// Reads residues under way, writes canonical words. In place allowed.
template <class A, int kUpper, int kThreads>
__global__ void __launch_bounds__(kThreads, kTileThreads / kThreads * kTileBlocks<A>)
    InverseColumnKernel(const __grid_constant__ PassArguments arguments) {
  __shared__ typename A::Residue words[TileWords(kThreads)];
  using Tile = ColumnTile<A, kUpper, kThreads>;
  const Place place(arguments);
  const auto m = ArithmeticTables<A>::Modulus(place.prime);
  WaitForPrecedingWork();
  const int first_column = static_cast<int>(blockIdx.x) * Tile::kColumns;
  Tile(words).Inverse(
      place.prime, m,
      [&](int row, int column) {
        return A::FromBits(place.in[(row << kRowLevels) + first_column + column]);
      },
      [&](int row, int column, typename A::Residue x) {
        place.out[(row << kRowLevels) + first_column + column] = A::ToWord(x);
      });
}

LaunchShape ShapeOf(const PassArguments& a) {
  const int threads = TileThreadsFor(a.ring.log_n, a.limbs.count * a.out.outer_count);
  return {dim3((1u << a.ring.log_n) / TileWords(threads), static_cast<unsigned>(a.limbs.count),
               static_cast<unsigned>(a.out.outer_count)),
          static_cast<unsigned>(threads)};
}

bool IsTwoPass(const RingTables& ring) {
  return ring.log_n >= kTwoPassMinLogN && ring.log_n <= kTwoPassMaxLogN;
}

}  // namespace

template <class A>
absl::Status NttLaunchers<A>::Forward(const RingTables& ring, const LimbPrimes& limbs,
                                      ConstPolyView in, PolyView out, Stream& stream) {
  if (!IsTwoPass(ring)) return AnyDegreeNtt<A>::Forward(ring, limbs, in, out, stream);
  PassArguments arguments = {ring, limbs, in, out};
  const LaunchShape shape = ShapeOf(arguments);
  CIPHERD_RETURN_IF_ERROR(WithTile(
      ring.log_n - kRowLevels, shape.threads, [&]<int kUpper, int kThreads>() -> absl::Status {
        return LaunchEarly("forward_ntt", stream, shape, ForwardColumnKernel<A, kUpper, kThreads>,
                           arguments);
      }));
  arguments.in = out;
  return LaunchEarly("forward_ntt", stream, shape, ForwardRowKernel<A>, arguments);
}

template <class A>
absl::Status NttLaunchers<A>::Inverse(const RingTables& ring, const LimbPrimes& limbs,
                                      ConstPolyView in, PolyView out, Stream& stream) {
  if (!IsTwoPass(ring)) return AnyDegreeNtt<A>::Inverse(ring, limbs, in, out, stream);
  PassArguments arguments = {ring, limbs, in, out};
  const LaunchShape shape = ShapeOf(arguments);
  CIPHERD_RETURN_IF_ERROR(
      LaunchEarly("inverse_ntt", stream, shape, InverseRowKernel<A>, arguments));
  arguments.in = out;
  return WithTile(ring.log_n - kRowLevels, shape.threads,
                  [&]<int kUpper, int kThreads>() -> absl::Status {
                    return LaunchEarly("inverse_ntt", stream, shape,
                                       InverseColumnKernel<A, kUpper, kThreads>, arguments);
                  });
}

template struct NttLaunchers<math::IntegerArithmetic>;
template struct NttLaunchers<math::FmaArithmetic>;

}  // namespace cipherd::kernels::cuda
