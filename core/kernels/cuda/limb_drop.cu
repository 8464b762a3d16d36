// Division by limbs: lift.cu brings the dropped limbs to the remaining ones, up to the column pass;
// one launch takes the row pass, subtracts, multiplies and adds. Its unfused twin is inverse_ntt,
// convert_basis, forward_ntt, subtract_scale and an addition (tests/ckks/device_agreement_test.cc).
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

struct DropArguments {
  RingTables ring;
  LimbPrimes remaining;
  int head_count;
  LimbScalars inverse;
  LimbScalars tail;
  DropAddend addend;
  ConstPolyView in;
  PolyView out;
};

// Reads `out`, residues after the column pass of the dropped limbs' representative, `in` at the
// remaining limb, and the addend where there is one for the polynomial. Writes
// (in - representative) · inverse + addend · tail over `out`, canonical.
template <class A>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks<A>)
    DropRowKernel(const __grid_constant__ DropArguments a) {
  __shared__ typename A::Residue words[kRowTileWords];
  const int log_n = a.ring.log_n;
  const auto limb = static_cast<int>(blockIdx.y);
  const auto outer = static_cast<int64_t>(blockIdx.z);
  const PrimeConstants& prime = a.ring.primes[a.remaining.prime[limb]];
  const auto m = ArithmeticTables<A>::Modulus(prime);
  WaitForPrecedingWork();
  const RowOfTile<A> tile(words);
  const uint32_t row = RowOfThread();
  const int64_t first = RowWord(row, tile.lane());
  const uint64_t* const in = LimbOf(a.in, outer, a.head_count + limb, log_n) + first;
  uint64_t* const out = LimbOf(a.out, outer, limb, log_n) + first;

  typename A::Residue x[kPoints];
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) x[e] = A::FromBits(out[e * kPoints]);
  tile.Forward(x, (1u << (log_n - kRowLevels)) + row, prime, m);
  const auto inverse = A::MakeFactor(a.inverse.value[limb], a.inverse.shoup[limb], m);
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) {
    x[e] = A::SubtractMultiplyFactor(A::FromWord(in[e * kPoints]), A::FinishForward(x[e], m),
                                     inverse, m);
  }
  if (outer < a.addend.poly.outer_count && a.addend.poly.data != nullptr) {
    const uint64_t* const poly = a.addend.poly.data + outer * a.addend.poly.outer_stride +
                                 (static_cast<int64_t>(a.head_count + limb) << log_n);
    const bool is_identity = a.addend.galois_element == 1;
    // Without a head, the tail's product is all of D, and the factor 1.
    const auto tail = A::MakeFactor(a.tail.value[limb], a.tail.shoup[limb], m);
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) {
      const uint32_t i = static_cast<uint32_t>(first) + e * kPoints;
      const uint32_t source =
          is_identity ? i : AutomorphismNttSource(i, a.addend.galois_element, log_n);
      auto term = A::FromWord(poly[source]);
      if (a.head_count != 0) term = A::MultiplyFactor(term, tail, m);
      x[e] = A::Add(x[e], term, m);
    }
  }
  CIPHERD_UNROLL
  for (int e = 0; e < kPoints; ++e) out[e * kPoints] = A::ToWord(x[e]);
}

LiftPlan PlanOf(const LimbDrop& drop) {
  LiftPlan plan;
  plan.packed = drop.dropped;
  for (int p = 0; p < drop.dropped.count; ++p) {
    plan.source_limb[p] = static_cast<uint8_t>(drop.dropped_limb(p));
  }
  plan.target = drop.remaining;
  plan.lift_count = 1;
  plan.lifts[0].conversion = drop.conversion;
  return plan;
}

}  // namespace

template <class A>
absl::Status FusedLaunchers<A>::Drop(const RingTables& ring, const LimbDrop& drop, ConstPolyView in,
                                     const DropAddend& addend, PolyView packed, PolyView out,
                                     Stream& stream) {
  HeadAddend head;
  if (addend.poly.data != nullptr) head = {addend, drop.head_count, drop.head_tail};
  CIPHERD_RETURN_IF_ERROR(
      LiftLaunches<A>::ThroughColumns(ring, PlanOf(drop), head, in, packed, out, stream));
  const DropArguments arguments = {
      ring, drop.remaining, drop.head_count, drop.inverse, drop.remaining_tail, addend, in, out};
  const LaunchShape shape = {
      dim3((1u << ring.log_n) / TileWords(kTileThreads),
           static_cast<unsigned>(drop.remaining.count), static_cast<unsigned>(out.outer_count)),
      kTileThreads};
  return LaunchEarly("drop_rows", stream, shape, DropRowKernel<A>, arguments);
}

template absl::Status FusedLaunchers<math::IntegerArithmetic>::Drop(const RingTables&,
                                                                    const LimbDrop&, ConstPolyView,
                                                                    const DropAddend&, PolyView,
                                                                    PolyView, Stream&);
template absl::Status FusedLaunchers<math::FmaArithmetic>::Drop(const RingTables&, const LimbDrop&,
                                                                ConstPolyView, const DropAddend&,
                                                                PolyView, PolyView, Stream&);

}  // namespace cipherd::kernels::cuda
