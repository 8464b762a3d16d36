#include <cstdint>
#include <vector>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/automorphism_body.h"
#include "core/kernels/host/launch.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"
#include "core/ring/galois.h"

namespace cipherd::kernels::host {

using ring::PrimeConstants;

template <class A>
absl::Status AutomorphismLaunchers<A>::Ntt(const RingTables& ring, const LimbPrimes& limbs,
                                           uint32_t galois_element, ConstPolyView a, PolyView out,
                                           Stream& stream) {
  return Launch("automorphism_ntt", stream, [=] {
    const std::vector<uint32_t> sources = AutomorphismNttSources(galois_element, ring.log_n);
    ForEachLimb(ring, limbs, out.outer_count, [&](int64_t outer, int limb, const PrimeConstants&) {
      const uint64_t* x = LimbOf(a, outer, limb, ring.log_n);
      uint64_t* z = LimbOf(out, outer, limb, ring.log_n);
      for (size_t i = 0; i < sources.size(); ++i) z[i] = x[sources[i]];
    });
  });
}

template <class A>
absl::Status AutomorphismLaunchers<A>::Coefficient(const RingTables& ring, const LimbPrimes& limbs,
                                                   uint32_t galois_element, ConstPolyView a,
                                                   PolyView out, Stream& stream) {
  const uint32_t g_inverse = ring::InverseElement(galois_element, ring.log_n);
  return Launch("automorphism_coefficient", stream, [=] {
    ForEachLimb(
        ring, limbs, out.outer_count, [&](int64_t outer, int limb, const PrimeConstants& prime) {
          const auto m = ArithmeticTables<A>::Modulus(prime);
          const uint64_t* x = LimbOf(a, outer, limb, ring.log_n);
          uint64_t* z = LimbOf(out, outer, limb, ring.log_n);
          for (uint32_t i = 0; i < uint32_t{1} << ring.log_n; ++i) {
            const SignedIndex source = AutomorphismCoefficientSource(i, g_inverse, ring.log_n);
            z[i] = AutomorphismCoefficientEntry<A>(x[source.index], source.negate, m);
          }
        });
  });
}

template struct AutomorphismLaunchers<math::IntegerArithmetic>;
template struct AutomorphismLaunchers<math::FmaArithmetic>;

}  // namespace cipherd::kernels::host
