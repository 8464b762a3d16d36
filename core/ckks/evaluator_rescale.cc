// Evaluator: moving to a deeper depth.
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/device_context.h"
#include "core/ckks/evaluator.h"
#include "core/ckks/evaluator_checks.h"
#include "core/ckks/key_switch.h"

namespace cipherd::ckks {

absl::StatusOr<Ciphertext> Evaluator::Rescale(const Ciphertext& a, runtime::Stream& stream) const {
  const internal::Operation operation{context_, "Rescale", stream};
  const ContextParameters& parameters = context_.parameters();
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckNtt(operation, "ciphertext a", a.domain, "convert it (ToNtt)"));
  if (a.depth == parameters.max_depth()) {
    return absl::InvalidArgumentError(absl::StrCat("Rescale: ciphertext a: depth: expected below ",
                                                   parameters.max_depth(), ", got ", a.depth,
                                                   ", the last one; use a context of more depths"));
  }
  Ciphertext out = a;
  out.depth = a.depth + 1;
  out.scale = a.scale / parameters.RescaleDivisor(a.depth);
  CIPHERD_ASSIGN_OR_RETURN(
      out.data, internal::DivideByDropped(context_, context_.rescale(a.depth), a.data, {}, stream));
  return out;
}

absl::StatusOr<Ciphertext> Evaluator::DropToDepth(const Ciphertext& a, int depth,
                                                  runtime::Stream& stream) const {
  const internal::Operation operation{context_, "DropToDepth", stream};
  const ContextParameters& parameters = context_.parameters();
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  if (depth < a.depth || depth > parameters.max_depth()) {
    return absl::InvalidArgumentError(
        absl::StrCat("DropToDepth: depth: expected ", a.depth, " (that of ciphertext a) to ",
                     parameters.max_depth(), ", got ", depth, "; drop the other operand instead"));
  }
  Ciphertext out = a;
  out.depth = depth;
  CIPHERD_ASSIGN_OR_RETURN(
      out.data,
      internal::AllocateLike(a, a.component_count(), parameters.active_q_count(depth), stream));
  const int dropped = parameters.dropped_count(depth) - parameters.dropped_count(a.depth);
  CIPHERD_RETURN_IF_ERROR(context_.kernels().copy(
      context_.ring(), out.limb_count(),
      internal::FromLimb(internal::AllComponents(a.data), dropped, context_),
      internal::AllComponents(out.data), stream));
  return out;
}

}  // namespace cipherd::ckks
