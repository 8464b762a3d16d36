#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/automorphism_body.h"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/launchers.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"
#include "core/ring/galois.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::PrimeConstants;

struct NttOperation {
  uint32_t galois_element;
  ConstPolyView a;
  PolyView out;

  __device__ void operator()(const RingTables& ring, const PrimeConstants&,
                             const EntryPlace& place) const {
    const uint32_t source = AutomorphismNttSource(place.i, galois_element, ring.log_n);
    LimbOf(out, place.outer, place.limb, ring.log_n)[place.i] =
        LimbOf(a, place.outer, place.limb, ring.log_n)[source];
  }
};

template <class A>
struct CoefficientOperation {
  uint32_t g_inverse;
  ConstPolyView a;
  PolyView out;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& place) const {
    const SignedIndex source = AutomorphismCoefficientSource(place.i, g_inverse, ring.log_n);
    LimbOf(out, place.outer, place.limb, ring.log_n)[place.i] = AutomorphismCoefficientEntry<A>(
        LimbOf(a, place.outer, place.limb, ring.log_n)[source.index], source.negate,
        ArithmeticTables<A>::Modulus(prime));
  }
};

}  // namespace

template <class A>
absl::Status AutomorphismLaunchers<A>::Ntt(const RingTables& ring, const LimbPrimes& limbs,
                                           uint32_t galois_element, ConstPolyView a, PolyView out,
                                           Stream& stream) {
  return LaunchEntries("automorphism_ntt", ring, limbs, out.outer_count,
                       NttOperation{galois_element, a, out}, stream);
}

template <class A>
absl::Status AutomorphismLaunchers<A>::Coefficient(const RingTables& ring, const LimbPrimes& limbs,
                                                   uint32_t galois_element, ConstPolyView a,
                                                   PolyView out, Stream& stream) {
  const uint32_t g_inverse = ring::InverseElement(galois_element, ring.log_n);
  return LaunchEntries("automorphism_coefficient", ring, limbs, out.outer_count,
                       CoefficientOperation<A>{g_inverse, a, out}, stream);
}

template struct AutomorphismLaunchers<math::IntegerArithmetic>;
template struct AutomorphismLaunchers<math::FmaArithmetic>;

}  // namespace cipherd::kernels::cuda
