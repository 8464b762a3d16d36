#include "core/ckks/key_switch.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/ckks/evaluator_checks.h"

namespace cipherd::ckks::internal {

using value::Tensor;

namespace {

// Whether the digits of a depth fit a fused step.
bool LiftIsFused(const DeviceContext& context, int depth) {
  return context.fused() != nullptr && context.mod_up(depth).fused.lift_count > 0;
}

// A new tensor like `data` with another number of limbs.
absl::StatusOr<Tensor> AllocateLimbs(const Tensor& data, int64_t limb_count,
                                     runtime::Stream& stream) {
  std::vector<int64_t> shape = data.shape();
  shape[shape.size() - 2] = limb_count;
  return Tensor::AllocateOn(stream, value::DType::kUint64, std::move(shape));
}

// The first `count` polynomials of a view.
kernels::PolyView First(kernels::PolyView view, int64_t count) {
  view.outer_count = count;
  return view;
}

// The composition that FusedKernels::drop stands for, step by step.
class ComposedDrop {
 public:
  ComposedDrop(const DeviceContext& context, const LimbDrop& drop, const Tensor& data,
               runtime::Stream& stream)
      : context_(context), kernels_(context.kernels()), drop_(drop), data_(data), stream_(stream) {}

  absl::StatusOr<Tensor> Run(const kernels::DropAddend& addend) {
    CIPHERD_RETURN_IF_ERROR(Permute(addend));
    CIPHERD_ASSIGN_OR_RETURN(const Tensor dropped,
                             AllocateLimbs(data_, drop_.dropped.count, stream_));
    CIPHERD_RETURN_IF_ERROR(ToCoefficients(Polynomials(dropped)));
    CIPHERD_ASSIGN_OR_RETURN(Tensor out, AllocateLimbs(data_, drop_.remaining.count, stream_));
    const kernels::PolyView view = Polynomials(out);
    CIPHERD_RETURN_IF_ERROR(kernels_.convert_basis(context_.ring(), drop_.conversion,
                                                   Polynomials(dropped), view, stream_));
    CIPHERD_RETURN_IF_ERROR(
        kernels_.forward_ntt(context_.ring(), drop_.remaining, view, view, stream_));
    CIPHERD_RETURN_IF_ERROR(kernels_.subtract_scale(context_.ring(), drop_.remaining, drop_.inverse,
                                                    Limbs(drop_.head_count), view, view, stream_));
    CIPHERD_RETURN_IF_ERROR(
        AddAddend(drop_.remaining, drop_.remaining_tail, drop_.head_count, view));
    return out;
  }

 private:
  // `data` from limb `first` on.
  kernels::PolyView Limbs(int first) const { return FromLimb(Polynomials(data_), first, context_); }

  // Makes addend_ the addend after its automorphism.
  absl::Status Permute(const kernels::DropAddend& addend) {
    addend_ = addend.poly;
    if (addend.poly.data == nullptr || addend.galois_element == 1) return absl::OkStatus();
    kernels::LimbPrimes limbs;
    for (int l = 0; l < drop_.head_count; ++l) limbs.prime[limbs.count++] = drop_.dropped.prime[l];
    for (int l = 0; l < drop_.remaining.count; ++l) {
      limbs.prime[limbs.count++] = drop_.remaining.prime[l];
    }
    CIPHERD_ASSIGN_OR_RETURN(permuted_, AllocateLimbs(data_, limbs.count, stream_));
    const kernels::PolyView permuted = First(Polynomials(*permuted_), addend.poly.outer_count);
    addend_ = permuted;
    return kernels_.automorphism_ntt(context_.ring(), limbs, addend.galois_element, addend.poly,
                                     permuted, stream_);
  }

  // out = out + tail · addend, from the addend's limb `first` on.
  absl::Status AddAddend(const kernels::LimbPrimes& limbs, const kernels::LimbScalars& tail,
                         int first, kernels::PolyView out) {
    if (addend_.data == nullptr) return absl::OkStatus();
    const kernels::PolyView sum = First(out, addend_.outer_count);
    kernels::ConstPolyView term = addend_;
    term.data += first * context_.parameters().ring_degree();
    std::optional<Tensor> scaled;
    // Without a head, the tail is all that is divided by, and its factor 1.
    if (drop_.head_count > 0) {
      CIPHERD_ASSIGN_OR_RETURN(scaled, AllocateLimbs(data_, limbs.count, stream_));
      const kernels::PolyView product = First(Polynomials(*scaled), addend_.outer_count);
      CIPHERD_RETURN_IF_ERROR(
          kernels_.multiply_scalars(context_.ring(), limbs, tail, term, product, stream_));
      term = product;
    }
    return kernels_.binary(context_.ring(), limbs, kernels::BinaryOp::kAdd, sum, term, sum,
                           stream_);
  }

  // Writes the dropped limbs, with their addend, in the coefficient domain.
  absl::Status ToCoefficients(kernels::PolyView dropped) {
    kernels::LimbPrimes head = drop_.dropped;
    head.count = drop_.head_count;
    if (head.count > 0) {
      kernels::ConstPolyView source = Limbs(0);
      if (addend_.data != nullptr) {
        CIPHERD_RETURN_IF_ERROR(
            kernels_.copy(context_.ring(), head.count, source, dropped, stream_));
        CIPHERD_RETURN_IF_ERROR(AddAddend(head, drop_.head_tail, 0, dropped));
        source = dropped;
      }
      CIPHERD_RETURN_IF_ERROR(
          kernels_.inverse_ntt(context_.ring(), head, source, dropped, stream_));
    }
    kernels::LimbPrimes tail;
    for (int p = head.count; p < drop_.dropped.count; ++p) {
      tail.prime[tail.count++] = drop_.dropped.prime[p];
    }
    if (tail.count == 0) return absl::OkStatus();
    return kernels_.inverse_ntt(context_.ring(), tail, Limbs(head.count + drop_.remaining.count),
                                FromLimb(dropped, head.count, context_), stream_);
  }

  const DeviceContext& context_;
  const kernels::KernelTable& kernels_;
  const LimbDrop& drop_;
  const Tensor& data_;
  runtime::Stream& stream_;
  std::optional<Tensor> permuted_;
  kernels::ConstPolyView addend_;
};

}  // namespace

absl::StatusOr<kernels::KeySlot> KeySlotOf(const DeviceContext& context, int depth, const KeyId& id,
                                           const KeyTable& keys) {
  CIPHERD_ASSIGN_OR_RETURN(const int slot, keys.layout.SlotOf(id));
  const ContextParameters& parameters = context.parameters();
  const ModUpPlan& plan = context.mod_up(depth);
  kernels::KeySlot key;
  key.slot = keys.addresses.data_as<const uint64_t*>() + slot;
  key.key_limb_count = parameters.q_count() + parameters.p_count();
  key.first_limb = parameters.dropped_count(depth);
  for (size_t d = 0; d < plan.digits.size(); ++d) {
    key.key_digits[d] = static_cast<uint16_t>(plan.digits[d].key_digit);
  }
  return key;
}

absl::StatusOr<Tensor> ModUp(const DeviceContext& context, const Ciphertext& a, int component,
                             runtime::Stream& stream) {
  const kernels::KernelTable& kernels = context.kernels();
  const ModUpPlan& plan = context.mod_up(a.depth);
  const int qp_count = context.qp_limbs(a.depth).count;
  const int64_t digit_count = static_cast<int64_t>(plan.digits.size());
  const kernels::PolyView source = Components(a.data, component, 1);

  if (LiftIsFused(context, a.depth)) {
    CIPHERD_ASSIGN_OR_RETURN(const Tensor packed, AllocateLike(a, 1, a.limb_count(), stream));
    CIPHERD_ASSIGN_OR_RETURN(Tensor digits, AllocateLike(a, digit_count, qp_count, stream));
    CIPHERD_RETURN_IF_ERROR(context.fused()->lift(
        context.ring(), plan.fused, source, Polynomials(packed), Polynomials(digits), stream));
    return digits;
  }

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
  CIPHERD_ASSIGN_OR_RETURN(const kernels::KeySlot key, KeySlotOf(context, like.depth, id, keys));
  const ModUpPlan& plan = context.mod_up(like.depth);
  return context.kernels().key_inner_product(context.ring(), context.qp_limbs(like.depth),
                                             static_cast<int>(plan.digits.size()), galois_element,
                                             Polynomials(digits), key, Polynomials(out), stream);
}

absl::StatusOr<Tensor> DivideByDropped(const DeviceContext& context, const LimbDrop& drop,
                                       const Tensor& data, const kernels::DropAddend& addend,
                                       runtime::Stream& stream) {
  if (context.fused() == nullptr || drop.dropped.count > kernels::kMaxFusedSources) {
    return ComposedDrop(context, drop, data, stream).Run(addend);
  }
  CIPHERD_ASSIGN_OR_RETURN(const Tensor packed, AllocateLimbs(data, drop.dropped.count, stream));
  CIPHERD_ASSIGN_OR_RETURN(Tensor out, AllocateLimbs(data, drop.remaining.count, stream));
  CIPHERD_RETURN_IF_ERROR(context.fused()->drop(context.ring(), drop, Polynomials(data), addend,
                                                Polynomials(packed), Polynomials(out), stream));
  return out;
}

absl::StatusOr<Tensor> SwitchKey(const DeviceContext& context, const Ciphertext& a, int component,
                                 uint32_t galois_element, const KeyId& id, const KeyTable& keys,
                                 runtime::Stream& stream) {
  const int qp_count = context.qp_limbs(a.depth).count;
  CIPHERD_ASSIGN_OR_RETURN(Tensor product, AllocateLike(a, 2, qp_count, stream));
  if (!LiftIsFused(context, a.depth)) {
    CIPHERD_ASSIGN_OR_RETURN(const Tensor digits, ModUp(context, a, component, stream));
    CIPHERD_RETURN_IF_ERROR(
        KeyInnerProduct(context, a, digits, galois_element, id, keys, product, stream));
    return product;
  }
  CIPHERD_ASSIGN_OR_RETURN(const kernels::KeySlot key, KeySlotOf(context, a.depth, id, keys));
  const kernels::LiftPlan& plan = context.mod_up(a.depth).fused;
  CIPHERD_ASSIGN_OR_RETURN(const Tensor packed, AllocateLike(a, 1, a.limb_count(), stream));
  CIPHERD_ASSIGN_OR_RETURN(const Tensor digits, AllocateLike(a, plan.lift_count, qp_count, stream));
  CIPHERD_RETURN_IF_ERROR(context.fused()->switch_key(
      context.ring(), plan, galois_element, Components(a.data, component, 1), key,
      Polynomials(packed), Polynomials(digits), Polynomials(product), stream));
  return product;
}

}  // namespace cipherd::ckks::internal
