// Evaluator: sums, differences, changes of domain.
#include <algorithm>

#include "core/base/status_macros.h"
#include "core/ckks/device_context.h"
#include "core/ckks/evaluator.h"
#include "core/ckks/evaluator_checks.h"

namespace cipherd::ckks {
namespace {

using internal::AllComponents;
using internal::Components;
using internal::Operation;
using kernels::BinaryOp;
using value::PolynomialDomain;

absl::Status CheckPlainOperands(const Operation& operation, const Ciphertext& a,
                                const Plaintext& b) {
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "plaintext b", b));
  CIPHERD_RETURN_IF_ERROR(CheckSameDepth(operation, a.depth, b.depth));
  CIPHERD_RETURN_IF_ERROR(CheckSameDomain(operation, a.domain, b.domain));
  CIPHERD_RETURN_IF_ERROR(CheckPlainBatch(operation, a, b));
  return CheckSameScale(operation, a.scale, b.scale);
}

// a with its tensor replaced by a new one of the same shape.
absl::StatusOr<Ciphertext> NewLike(const Ciphertext& a, int64_t components,
                                   runtime::Stream& stream) {
  Ciphertext out = a;
  CIPHERD_ASSIGN_OR_RETURN(out.data, internal::AllocateLike(a, components, a.limb_count(), stream));
  return out;
}

absl::StatusOr<Ciphertext> AddOrSubtract(const Operation& operation, BinaryOp op,
                                         const Ciphertext& a, const Ciphertext& b) {
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext b", b));
  CIPHERD_RETURN_IF_ERROR(CheckSameDepth(operation, a.depth, b.depth));
  CIPHERD_RETURN_IF_ERROR(CheckSameDomain(operation, a.domain, b.domain));
  CIPHERD_RETURN_IF_ERROR(CheckSameBatch(operation, a, b));
  CIPHERD_RETURN_IF_ERROR(CheckSameScale(operation, a.scale, b.scale));

  const DeviceContext& context = operation.context;
  const kernels::LimbPrimes& limbs = context.q_limbs(a.depth);
  const int common = std::min(a.component_count(), b.component_count());
  const int most = std::max(a.component_count(), b.component_count());
  CIPHERD_ASSIGN_OR_RETURN(Ciphertext out, NewLike(a, most, operation.stream));
  CIPHERD_RETURN_IF_ERROR(context.kernels().binary(
      context.ring(), limbs, op, Components(a.data, 0, common), Components(b.data, 0, common),
      Components(out.data, 0, common), operation.stream));
  if (common == most) return out;
  // The component that only one operand has.
  const kernels::PolyView rest = Components(out.data, common, most - common);
  if (a.component_count() == most) {
    CIPHERD_RETURN_IF_ERROR(context.kernels().copy(context.ring(), limbs.count,
                                                   Components(a.data, common, most - common), rest,
                                                   operation.stream));
  } else if (op == BinaryOp::kAdd) {
    CIPHERD_RETURN_IF_ERROR(context.kernels().copy(context.ring(), limbs.count,
                                                   Components(b.data, common, most - common), rest,
                                                   operation.stream));
  } else {
    CIPHERD_RETURN_IF_ERROR(context.kernels().negate(
        context.ring(), limbs, Components(b.data, common, most - common), rest, operation.stream));
  }
  return out;
}

absl::StatusOr<Ciphertext> AddOrSubtractPlain(const Operation& operation, BinaryOp op,
                                              const Ciphertext& a, const Plaintext& b) {
  CIPHERD_RETURN_IF_ERROR(CheckPlainOperands(operation, a, b));
  const DeviceContext& context = operation.context;
  const kernels::LimbPrimes& limbs = context.q_limbs(a.depth);
  const int rest = a.component_count() - 1;
  CIPHERD_ASSIGN_OR_RETURN(Ciphertext out, NewLike(a, a.component_count(), operation.stream));
  CIPHERD_RETURN_IF_ERROR(context.kernels().binary(
      context.ring(), limbs, op, Components(a.data, 0, 1), internal::Polynomials(b.data),
      Components(out.data, 0, 1), operation.stream));
  CIPHERD_RETURN_IF_ERROR(context.kernels().copy(context.ring(), limbs.count,
                                                 Components(a.data, 1, rest),
                                                 Components(out.data, 1, rest), operation.stream));
  return out;
}

}  // namespace

absl::StatusOr<Ciphertext> Evaluator::Add(const Ciphertext& a, const Ciphertext& b,
                                          runtime::Stream& stream) const {
  return AddOrSubtract({context_, "Add", stream}, BinaryOp::kAdd, a, b);
}

absl::StatusOr<Ciphertext> Evaluator::Subtract(const Ciphertext& a, const Ciphertext& b,
                                               runtime::Stream& stream) const {
  return AddOrSubtract({context_, "Subtract", stream}, BinaryOp::kSubtract, a, b);
}

absl::StatusOr<Ciphertext> Evaluator::Negate(const Ciphertext& a, runtime::Stream& stream) const {
  CIPHERD_RETURN_IF_ERROR(internal::CheckOperand({context_, "Negate", stream}, "ciphertext a", a));
  CIPHERD_ASSIGN_OR_RETURN(Ciphertext out, NewLike(a, a.component_count(), stream));
  CIPHERD_RETURN_IF_ERROR(context_.kernels().negate(context_.ring(), context_.q_limbs(a.depth),
                                                    AllComponents(a.data), AllComponents(out.data),
                                                    stream));
  return out;
}

absl::StatusOr<Ciphertext> Evaluator::AddPlain(const Ciphertext& a, const Plaintext& b,
                                               runtime::Stream& stream) const {
  return AddOrSubtractPlain({context_, "AddPlain", stream}, BinaryOp::kAdd, a, b);
}

absl::StatusOr<Ciphertext> Evaluator::SubtractPlain(const Ciphertext& a, const Plaintext& b,
                                                    runtime::Stream& stream) const {
  return AddOrSubtractPlain({context_, "SubtractPlain", stream}, BinaryOp::kSubtract, a, b);
}

absl::StatusOr<Ciphertext> Evaluator::ToNtt(const Ciphertext& a, runtime::Stream& stream) const {
  CIPHERD_RETURN_IF_ERROR(internal::CheckOperand({context_, "ToNtt", stream}, "ciphertext a", a));
  if (a.domain == PolynomialDomain::kNtt) {
    return absl::InvalidArgumentError(
        "ToNtt: ciphertext a: domain: expected coefficient, got ntt; use it as it is");
  }
  CIPHERD_ASSIGN_OR_RETURN(Ciphertext out, NewLike(a, a.component_count(), stream));
  out.domain = PolynomialDomain::kNtt;
  CIPHERD_RETURN_IF_ERROR(context_.kernels().forward_ntt(context_.ring(), context_.q_limbs(a.depth),
                                                         AllComponents(a.data),
                                                         AllComponents(out.data), stream));
  return out;
}

absl::StatusOr<Ciphertext> Evaluator::ToCoefficient(const Ciphertext& a,
                                                    runtime::Stream& stream) const {
  const Operation operation{context_, "ToCoefficient", stream};
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckNtt(operation, "ciphertext a", a.domain, "use it as it is"));
  CIPHERD_ASSIGN_OR_RETURN(Ciphertext out, NewLike(a, a.component_count(), stream));
  out.domain = PolynomialDomain::kCoefficient;
  CIPHERD_RETURN_IF_ERROR(context_.kernels().inverse_ntt(context_.ring(), context_.q_limbs(a.depth),
                                                         AllComponents(a.data),
                                                         AllComponents(out.data), stream));
  return out;
}

}  // namespace cipherd::ckks
