#include <cstdint>

#include "core/kernels/host/launch.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/host/limb_kernel_choice.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/ring/galois.h"

namespace cipherd::kernels::host {

using ring::PrimeConstants;

template <class Choice>
absl::Status AutomorphismLaunchers<Choice>::Ntt(const RingTables& ring, const LimbPrimes& limbs,
                                                uint32_t galois_element, ConstPolyView a,
                                                PolyView out, Stream& stream) {
  const PermutationPtr sources = AutomorphismOf(galois_element, ring.log_n);
  return Launch("automorphism_ntt", stream, [=] {
    ForEachLimb(ring, limbs, out.outer_count, Work::kLight,
                [&](int64_t outer, int limb, const PrimeConstants&) {
                  const uint64_t* x = LimbOf(a, outer, limb, ring.log_n);
                  uint64_t* z = LimbOf(out, outer, limb, ring.log_n);
                  for (size_t i = 0; i < sources->size(); ++i) z[i] = x[(*sources)[i]];
                });
  });
}

template <class Choice>
absl::Status AutomorphismLaunchers<Choice>::Coefficient(const RingTables& ring,
                                                        const LimbPrimes& limbs,
                                                        uint32_t galois_element, ConstPolyView a,
                                                        PolyView out, Stream& stream) {
  const uint32_t galois_inverse = ring::InverseElement(galois_element, ring.log_n);
  return Launch("automorphism_coefficient", stream, [=] {
    ForEachLimb(ring, limbs, out.outer_count, Work::kLight,
                [&](int64_t outer, int limb, const PrimeConstants& prime) {
                  Choice::ForPrime(prime, ring.log_n)
                      .automorphism_coefficient(prime, ring.log_n, galois_inverse,
                                                LimbOf(a, outer, limb, ring.log_n),
                                                LimbOf(out, outer, limb, ring.log_n));
                });
  });
}

template struct AutomorphismLaunchers<ScalarChoice<math::IntegerArithmetic>>;
template struct AutomorphismLaunchers<ScalarChoice<math::FmaArithmetic>>;
template struct AutomorphismLaunchers<MixedChoice>;

}  // namespace cipherd::kernels::host
