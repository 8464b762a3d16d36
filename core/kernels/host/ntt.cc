#include <cstdint>

#include "core/kernels/host/launch.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/host/limb_kernel_choice.h"
#include "core/kernels/host/limb_ntt.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"

namespace cipherd::kernels::host {

using ring::PrimeConstants;

template <class Choice>
absl::Status NttLaunchers<Choice>::Forward(const RingTables& ring, const LimbPrimes& limbs,
                                           ConstPolyView in, PolyView out, Stream& stream) {
  return Launch("forward_ntt", stream, [=] {
    ForEachLimb(ring, limbs, out.outer_count, Work::kHeavy,
                [&](int64_t outer, int limb, const PrimeConstants& prime) {
                  Choice::ForPrime(prime, ring.log_n)
                      .forward_ntt(prime, ring.log_n, LimbOf(in, outer, limb, ring.log_n),
                                   LimbOf(out, outer, limb, ring.log_n));
                });
  });
}

template <class Choice>
absl::Status NttLaunchers<Choice>::Inverse(const RingTables& ring, const LimbPrimes& limbs,
                                           ConstPolyView in, PolyView out, Stream& stream) {
  return Launch("inverse_ntt", stream, [=] {
    ForEachLimb(ring, limbs, out.outer_count, Work::kHeavy,
                [&](int64_t outer, int limb, const PrimeConstants& prime) {
                  Choice::ForPrime(prime, ring.log_n)
                      .inverse_ntt(prime, ring.log_n, LimbOf(in, outer, limb, ring.log_n),
                                   LimbOf(out, outer, limb, ring.log_n));
                });
  });
}

template struct NttLaunchers<ScalarChoice<math::IntegerArithmetic>>;
template struct NttLaunchers<ScalarChoice<math::FmaArithmetic>>;
template struct NttLaunchers<MixedChoice>;

void ForwardNttOfLimb(const PrimeConstants& prime, int log_n, const uint64_t* in, uint64_t* out) {
  MixedChoice::ForPrime(prime, log_n).forward_ntt(prime, log_n, in, out);
}

void InverseNttOfLimb(const PrimeConstants& prime, int log_n, const uint64_t* in, uint64_t* out) {
  MixedChoice::ForPrime(prime, log_n).inverse_ntt(prime, log_n, in, out);
}

}  // namespace cipherd::kernels::host
