#include <cstdint>

#include "core/kernels/host/launch.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/host/limb_kernel_choice.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"

namespace cipherd::kernels::host {

using ring::PrimeConstants;

template <class Choice>
absl::Status KeyInnerProductLaunchers<Choice>::Run(const RingTables& ring, const LimbPrimes& limbs,
                                                   int digit_count, uint32_t galois_element,
                                                   ConstPolyView digits, const KeySlot& key,
                                                   PolyView out, Stream& stream) {
  const PermutationPtr sources =
      galois_element == 1 ? nullptr : AutomorphismOf(galois_element, ring.log_n);
  return Launch("key_inner_product", stream, [=] {
    const int64_t n = int64_t{1} << ring.log_n;
    const int64_t batch = out.outer_count / 2;
    const uint64_t* const key_words = *key.slot;
    ForEachLimb(
        ring, limbs, batch, Work::kHeavy, [&](int64_t item, int limb, const PrimeConstants& prime) {
          KeyProductOperands operands;
          operands.digit_count = digit_count;
          operands.component_stride = key.key_limb_count * n;
          for (int d = 0; d < digit_count; ++d) {
            operands.digits[d] = LimbOf(digits, d * batch + item, limb, ring.log_n);
            operands.key[d] = key_words + key.key_digits[d] * 2 * operands.component_stride +
                              (key.first_limb + limb) * n;
          }
          operands.sources = sources == nullptr ? nullptr : sources->data();
          operands.out0 = LimbOf(out, item, limb, ring.log_n);
          operands.out1 = LimbOf(out, batch + item, limb, ring.log_n);
          Choice::ForPrime(prime, ring.log_n).key_inner_product(prime, n, operands);
        });
  });
}

template struct KeyInnerProductLaunchers<ScalarChoice<math::IntegerArithmetic>>;
template struct KeyInnerProductLaunchers<ScalarChoice<math::FmaArithmetic>>;
template struct KeyInnerProductLaunchers<MixedChoice>;

}  // namespace cipherd::kernels::host
