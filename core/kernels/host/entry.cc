#include <algorithm>
#include <cstdint>

#include "core/kernels/host/launch.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/host/limb_kernel_choice.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"

namespace cipherd::kernels::host {
namespace {

using ring::PrimeConstants;

// Enqueues run(kernels of the limb, prime, outer, limb) for every limb.
template <class Choice, class Run>
absl::Status LaunchOnLimbs(const char* name, const RingTables& ring, const LimbPrimes& limbs,
                           int64_t outer_count, Stream& stream, const Run& run) {
  return Launch(name, stream, [=] {
    ForEachLimb(ring, limbs, outer_count, Work::kLight,
                [&](int64_t outer, int limb, const PrimeConstants& prime) {
                  run(Choice::ForPrime(prime, ring.log_n), prime, outer, limb);
                });
  });
}

int64_t DegreeOf(const RingTables& ring) { return int64_t{1} << ring.log_n; }

}  // namespace

template <class Choice>
absl::Status EntryLaunchers<Choice>::Binary(const RingTables& ring, const LimbPrimes& limbs,
                                            BinaryOp op, ConstPolyView a, ConstPolyView b,
                                            PolyView out, Stream& stream) {
  return LaunchOnLimbs<Choice>(
      "binary", ring, limbs, out.outer_count, stream,
      [=](const LimbKernels& kernels, const PrimeConstants& prime, int64_t outer, int limb) {
        const auto loop = op == BinaryOp::kAdd        ? kernels.add
                          : op == BinaryOp::kSubtract ? kernels.subtract
                                                      : kernels.multiply;
        loop(prime, DegreeOf(ring), LimbOf(a, outer, limb, ring.log_n),
             LimbOf(b, outer, limb, ring.log_n), LimbOf(out, outer, limb, ring.log_n));
      });
}

template <class Choice>
absl::Status EntryLaunchers<Choice>::Negate(const RingTables& ring, const LimbPrimes& limbs,
                                            ConstPolyView a, PolyView out, Stream& stream) {
  return LaunchOnLimbs<Choice>(
      "negate", ring, limbs, out.outer_count, stream,
      [=](const LimbKernels& kernels, const PrimeConstants& prime, int64_t outer, int limb) {
        kernels.negate(prime, DegreeOf(ring), LimbOf(a, outer, limb, ring.log_n),
                       LimbOf(out, outer, limb, ring.log_n));
      });
}

template <class Choice>
absl::Status EntryLaunchers<Choice>::MultiplyAdd(const RingTables& ring, const LimbPrimes& limbs,
                                                 ConstPolyView a, ConstPolyView b, PolyView sum,
                                                 Stream& stream) {
  return LaunchOnLimbs<Choice>(
      "multiply_add", ring, limbs, sum.outer_count, stream,
      [=](const LimbKernels& kernels, const PrimeConstants& prime, int64_t outer, int limb) {
        kernels.multiply_add(prime, DegreeOf(ring), LimbOf(a, outer, limb, ring.log_n),
                             LimbOf(b, outer, limb, ring.log_n),
                             LimbOf(sum, outer, limb, ring.log_n));
      });
}

template <class Choice>
absl::Status EntryLaunchers<Choice>::MultiplyScalars(const RingTables& ring,
                                                     const LimbPrimes& limbs,
                                                     const LimbScalars& scalars, ConstPolyView a,
                                                     PolyView out, Stream& stream) {
  return LaunchOnLimbs<Choice>(
      "multiply_scalars", ring, limbs, out.outer_count, stream,
      [=](const LimbKernels& kernels, const PrimeConstants& prime, int64_t outer, int limb) {
        kernels.multiply_scalar(prime, DegreeOf(ring), scalars.value[limb], scalars.shoup[limb],
                                LimbOf(a, outer, limb, ring.log_n),
                                LimbOf(out, outer, limb, ring.log_n));
      });
}

template <class Choice>
absl::Status EntryLaunchers<Choice>::SubtractScale(const RingTables& ring, const LimbPrimes& limbs,
                                                   const LimbScalars& scalars, ConstPolyView a,
                                                   ConstPolyView b, PolyView out, Stream& stream) {
  return LaunchOnLimbs<Choice>(
      "subtract_scale", ring, limbs, out.outer_count, stream,
      [=](const LimbKernels& kernels, const PrimeConstants& prime, int64_t outer, int limb) {
        kernels.subtract_scale(prime, DegreeOf(ring), scalars.value[limb], scalars.shoup[limb],
                               LimbOf(a, outer, limb, ring.log_n),
                               LimbOf(b, outer, limb, ring.log_n),
                               LimbOf(out, outer, limb, ring.log_n));
      });
}

template <class Choice>
absl::Status EntryLaunchers<Choice>::TensorProduct(const RingTables& ring, const LimbPrimes& limbs,
                                                   ConstPolyView a, ConstPolyView b, PolyView out,
                                                   Stream& stream) {
  const int64_t batch = out.outer_count / 3;
  return LaunchOnLimbs<Choice>(
      "tensor_product", ring, limbs, batch, stream,
      [=](const LimbKernels& kernels, const PrimeConstants& prime, int64_t item, int limb) {
        kernels.tensor_product(prime, DegreeOf(ring),
                               {.a0 = LimbOf(a, item, limb, ring.log_n),
                                .a1 = LimbOf(a, batch + item, limb, ring.log_n),
                                .b0 = LimbOf(b, item, limb, ring.log_n),
                                .b1 = LimbOf(b, batch + item, limb, ring.log_n),
                                .out0 = LimbOf(out, item, limb, ring.log_n),
                                .out1 = LimbOf(out, batch + item, limb, ring.log_n),
                                .out2 = LimbOf(out, 2 * batch + item, limb, ring.log_n)});
      });
}

template <class Choice>
absl::Status EntryLaunchers<Choice>::Copy(const RingTables& ring, int limb_count, ConstPolyView a,
                                          PolyView out, Stream& stream) {
  return Launch("copy", stream, [=] {
    for (int64_t outer = 0; outer < out.outer_count; ++outer) {
      std::copy_n(LimbOf(a, outer, 0, ring.log_n), int64_t{limb_count} << ring.log_n,
                  LimbOf(out, outer, 0, ring.log_n));
    }
  });
}

template <class Choice>
absl::Status EntryLaunchers<Choice>::LiftSigned(const RingTables& ring, const LimbPrimes& limbs,
                                                const int64_t* in, int64_t in_outer_stride,
                                                PolyView out, Stream& stream) {
  return LaunchOnLimbs<Choice>(
      "lift_signed", ring, limbs, out.outer_count, stream,
      [=](const LimbKernels& kernels, const PrimeConstants& prime, int64_t outer, int limb) {
        kernels.lift_signed(prime, DegreeOf(ring), in + outer * in_outer_stride,
                            LimbOf(out, outer, limb, ring.log_n));
      });
}

template struct EntryLaunchers<ScalarChoice<math::IntegerArithmetic>>;
template struct EntryLaunchers<ScalarChoice<math::FmaArithmetic>>;
template struct EntryLaunchers<MixedChoice>;

}  // namespace cipherd::kernels::host
