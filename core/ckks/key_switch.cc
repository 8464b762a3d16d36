#include "core/ckks/key_switch.h"

#include <vector>

#include "core/base/status_macros.h"
#include "core/ckks/evaluator_checks.h"

namespace cipherd::ckks::internal {

using value::Tensor;

absl::StatusOr<Tensor> ModUp(const DeviceContext& context, const Ciphertext& a, int component,
                             runtime::Stream& stream) {
  const kernels::KernelTable& kernels = context.kernels();
  const ModUpPlan& plan = context.mod_up(a.depth);
  const int qp_count = context.qp_limbs(a.depth).count;
  const int64_t digit_count = static_cast<int64_t>(plan.digits.size());
  const kernels::PolyView source = Components(a.data, component, 1);

  // Coefficients, in the packed order of the plan.
  CIPHERD_ASSIGN_OR_RETURN(const Tensor packed, AllocateLike(a, 1, a.limb_count(), stream));
  for (const ModUpPlan::Gather& gather : plan.gathers) {
    CIPHERD_RETURN_IF_ERROR(kernels.inverse_ntt(
        context.ring(), gather.run.primes, FromLimb(source, gather.run.first, context),
        FromLimb(Polynomials(packed), gather.first_packed, context), stream));
  }

  CIPHERD_ASSIGN_OR_RETURN(Tensor digits, AllocateLike(a, digit_count, qp_count, stream));
  for (int64_t d = 0; d < digit_count; ++d) {
    const DigitLift& lift = plan.digits[d];
    const kernels::PolyView out = Components(digits, d, 1);
    for (const LimbRun& run : lift.own) {
      CIPHERD_RETURN_IF_ERROR(kernels.copy(context.ring(), run.primes.count,
                                           FromLimb(source, run.first, context),
                                           FromLimb(out, run.first, context), stream));
    }
    for (const DigitLift::Target& target : lift.targets) {
      const kernels::PolyView limbs = FromLimb(out, target.run.first, context);
      CIPHERD_RETURN_IF_ERROR(kernels.convert_basis(
          context.ring(), target.conversion,
          FromLimb(Polynomials(packed), lift.first_packed, context), limbs, stream));
      CIPHERD_RETURN_IF_ERROR(
          kernels.forward_ntt(context.ring(), target.run.primes, limbs, limbs, stream));
    }
  }
  return digits;
}

absl::Status KeyInnerProduct(const DeviceContext& context, const Ciphertext& like,
                             const Tensor& digits, uint32_t galois_element, const KeyId& id,
                             const KeyTable& keys, const Tensor& out, runtime::Stream& stream) {
  CIPHERD_ASSIGN_OR_RETURN(const int slot, keys.layout.SlotOf(id));
  const ContextParameters& parameters = context.parameters();
  const ModUpPlan& plan = context.mod_up(like.depth);
  kernels::KeySlot key;
  key.slot = keys.addresses.data_as<const uint64_t*>() + slot;
  key.key_limb_count = parameters.q_count() + parameters.p_count();
  key.first_limb = parameters.dropped_count(like.depth);
  for (size_t d = 0; d < plan.digits.size(); ++d) {
    key.key_digits[d] = static_cast<uint16_t>(plan.digits[d].key_digit);
  }
  return context.kernels().key_inner_product(context.ring(), context.qp_limbs(like.depth),
                                             static_cast<int>(plan.digits.size()), galois_element,
                                             Polynomials(digits), key, Polynomials(out), stream);
}

absl::StatusOr<Tensor> DivideByDropped(const DeviceContext& context, const LimbDrop& drop,
                                       const Tensor& data, runtime::Stream& stream) {
  const kernels::KernelTable& kernels = context.kernels();
  std::vector<int64_t> shape = data.shape();
  int64_t& limb_axis = shape[shape.size() - 2];

  limb_axis = drop.dropped.count;
  CIPHERD_ASSIGN_OR_RETURN(const Tensor dropped,
                           Tensor::AllocateOn(stream, value::DType::kUint64, shape));
  CIPHERD_RETURN_IF_ERROR(kernels.inverse_ntt(
      context.ring(), drop.dropped, FromLimb(Polynomials(data), drop.first_dropped, context),
      Polynomials(dropped), stream));

  limb_axis = drop.remaining.count;
  CIPHERD_ASSIGN_OR_RETURN(Tensor out, Tensor::AllocateOn(stream, value::DType::kUint64, shape));
  CIPHERD_RETURN_IF_ERROR(kernels.convert_basis(context.ring(), drop.conversion,
                                                Polynomials(dropped), Polynomials(out), stream));
  CIPHERD_RETURN_IF_ERROR(kernels.forward_ntt(context.ring(), drop.remaining, Polynomials(out),
                                              Polynomials(out), stream));
  CIPHERD_RETURN_IF_ERROR(
      kernels.subtract_scale(context.ring(), drop.remaining, drop.inverse,
                             FromLimb(Polynomials(data), drop.first_remaining, context),
                             Polynomials(out), Polynomials(out), stream));
  return out;
}

absl::StatusOr<Tensor> SwitchKey(const DeviceContext& context, const Ciphertext& like,
                                 const Tensor& digits, uint32_t galois_element, const KeyId& id,
                                 const KeyTable& keys, runtime::Stream& stream) {
  CIPHERD_ASSIGN_OR_RETURN(const Tensor product,
                           AllocateLike(like, 2, context.qp_limbs(like.depth).count, stream));
  CIPHERD_RETURN_IF_ERROR(
      KeyInnerProduct(context, like, digits, galois_element, id, keys, product, stream));
  return DivideByDropped(context, context.mod_down(like.depth), product, stream);
}

}  // namespace cipherd::ckks::internal
