#include "core/ckks/sum_of_rotations.h"

#include <optional>

#include "core/base/status_macros.h"
#include "core/ckks/device_context.h"
#include "core/ckks/double_hoisting.h"
#include "core/ckks/evaluator_checks.h"
#include "core/ckks/key_switch.h"
#include "core/kernels/rotation_sums.h"

namespace cipherd::ckks {

using internal::AllComponents;
using value::Tensor;

absl::StatusOr<Ciphertext> SumOfRotations(const Evaluator& evaluator, const Ciphertext& a,
                                          std::span<const int64_t> steps, const KeyTable& keys,
                                          runtime::Stream& stream) {
  const DeviceContext& context = evaluator.context();
  const internal::Operation operation{context, "SumOfRotations", stream};
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckNtt(operation, "ciphertext a", a.domain, "convert it (ToNtt)"));
  CIPHERD_RETURN_IF_ERROR(
      CheckComponents(operation, "ciphertext a", a, 2, "relinearize it (Relinearize)"));
  if (steps.empty()) {
    return absl::InvalidArgumentError("SumOfRotations: steps: expected at least 1, got 0");
  }
  bool has_keys = false;
  for (const int64_t step : steps) {
    const KeyId id = KeyId::Rotation(step, context.parameters().slot_count());
    if (id.rotation_step == 0) continue;
    // Before anything is enqueued.
    CIPHERD_RETURN_IF_ERROR(keys.layout.SlotOf(id).status());
    has_keys = true;
  }

  kernels::RotationSums launch;
  launch.addend_scalars = context.p_residues(a.depth);
  std::optional<Tensor> digits;
  kernels::ConstPolyView digit_view;
  if (has_keys) {
    CIPHERD_ASSIGN_OR_RETURN(digits, internal::ModUp(context, a, 1, stream));
    digit_view = internal::Polynomials(*digits);
    launch.digit_count = static_cast<int>(digits->shape().front());
  }
  const kernels::LimbPrimes& limbs = context.qp_limbs(a.depth);
  CIPHERD_ASSIGN_OR_RETURN(const Tensor sum, internal::AllocateLike(a, 2, limbs.count, stream));
  for (size_t next = 0; next < steps.size();) {
    launch.rotation_count = 0;
    for (; next < steps.size() && launch.rotation_count < kernels::kMaxSumRotations; ++next) {
      kernels::RotationSums::Rotation& rotation = launch.rotations[launch.rotation_count++];
      rotation = {};
      if (steps[next] % context.parameters().slot_count() == 0) continue;
      CIPHERD_RETURN_IF_ERROR(
          internal::SetRotation(context, a.depth, steps[next], keys, rotation, launch));
    }
    CIPHERD_RETURN_IF_ERROR(context.kernels().rotation_sums(context.ring(), limbs, launch,
                                                            digit_view, AllComponents(a.data),
                                                            AllComponents(sum), stream));
    launch.accumulates = true;
  }
  Ciphertext out = a;
  CIPHERD_ASSIGN_OR_RETURN(
      out.data, internal::DivideByDropped(context, context.mod_down(a.depth), sum, {}, stream));
  return out;
}

}  // namespace cipherd::ckks
