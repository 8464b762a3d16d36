#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/automorphism_body.h"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/launchers.h"
#include "core/kernels/key_inner_product_body.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::PrimeConstants;

template <class A>
struct KeyInnerProductOperation {
  int digit_count;
  uint32_t galois_element;
  int64_t batch;
  ConstPolyView digits;
  KeySlot key;
  PolyView out;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& item) const {
    const uint32_t source =
        galois_element == 1 ? item.i : AutomorphismNttSource(item.i, galois_element, ring.log_n);
    const int64_t component_stride = static_cast<int64_t>(key.key_limb_count) << ring.log_n;
    const uint64_t* const key_entry =
        *key.slot + (static_cast<int64_t>(key.first_limb + item.limb) << ring.log_n) + item.i;
    KeyInnerProduct<A> sum;
    for (int d = 0; d < digit_count; ++d) {
      const uint64_t* const key_words = key_entry + 2 * key.key_digits[d] * component_stride;
      sum.Add(LimbOf(digits, d * batch + item.outer, item.limb, ring.log_n)[source], key_words[0],
              key_words[component_stride]);
    }
    const auto m = ArithmeticTables<A>::Modulus(prime);
    LimbOf(out, item.outer, item.limb, ring.log_n)[item.i] = sum.Component0(m);
    LimbOf(out, batch + item.outer, item.limb, ring.log_n)[item.i] = sum.Component1(m);
  }
};

}  // namespace

template <class A>
absl::Status KeyInnerProductLaunchers<A>::Run(const RingTables& ring, const LimbPrimes& limbs,
                                              int digit_count, uint32_t galois_element,
                                              ConstPolyView digits, const KeySlot& key,
                                              PolyView out, Stream& stream) {
  const int64_t batch = out.outer_count / 2;
  return LaunchEntries(
      "key_inner_product", ring, limbs, batch,
      KeyInnerProductOperation<A>{digit_count, galois_element, batch, digits, key, out}, stream);
}

template struct KeyInnerProductLaunchers<math::IntegerArithmetic>;
template struct KeyInnerProductLaunchers<math::FmaArithmetic>;

}  // namespace cipherd::kernels::cuda
