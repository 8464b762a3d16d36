// Evaluator: products.
#include "core/base/status_macros.h"
#include "core/ckks/device_context.h"
#include "core/ckks/evaluator.h"
#include "core/ckks/evaluator_checks.h"

namespace cipherd::ckks {
namespace {

using internal::AllComponents;
using internal::Components;
using internal::Operation;

absl::Status CheckFactor(const Operation& operation, std::string_view role, const Ciphertext& a) {
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, role, a));
  CIPHERD_RETURN_IF_ERROR(CheckNtt(operation, role, a.domain, "convert it (ToNtt)"));
  return CheckComponents(operation, role, a, 2, "relinearize it (Relinearize)");
}

absl::StatusOr<Ciphertext> Product(const Operation& operation, const Ciphertext& a,
                                   const Ciphertext& b) {
  CIPHERD_RETURN_IF_ERROR(CheckFactor(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckFactor(operation, "ciphertext b", b));
  CIPHERD_RETURN_IF_ERROR(CheckSameDepth(operation, a.depth, b.depth));
  CIPHERD_RETURN_IF_ERROR(CheckSameBatch(operation, a, b));
  CIPHERD_RETURN_IF_ERROR(CheckProductScale(operation, a.scale, b.scale));
  const DeviceContext& context = operation.context;
  Ciphertext out = a;
  out.scale = a.scale * b.scale;
  CIPHERD_ASSIGN_OR_RETURN(out.data,
                           internal::AllocateLike(a, 3, a.limb_count(), operation.stream));
  CIPHERD_RETURN_IF_ERROR(context.kernels().tensor_product(
      context.ring(), context.q_limbs(a.depth), AllComponents(a.data), AllComponents(b.data),
      AllComponents(out.data), operation.stream));
  return out;
}

}  // namespace

absl::StatusOr<Ciphertext> Evaluator::Multiply(const Ciphertext& a, const Ciphertext& b,
                                               runtime::Stream& stream) const {
  return Product({context_, "Multiply", stream}, a, b);
}

absl::StatusOr<Ciphertext> Evaluator::Square(const Ciphertext& a, runtime::Stream& stream) const {
  return Product({context_, "Square", stream}, a, a);
}

absl::StatusOr<Ciphertext> Evaluator::MultiplyPlain(const Ciphertext& a, const Plaintext& b,
                                                    runtime::Stream& stream) const {
  const Operation operation{context_, "MultiplyPlain", stream};
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "plaintext b", b));
  CIPHERD_RETURN_IF_ERROR(CheckNtt(operation, "ciphertext a", a.domain, "convert it (ToNtt)"));
  CIPHERD_RETURN_IF_ERROR(
      CheckNtt(operation, "plaintext b", b.domain, "encode it in the NTT domain (Encoder)"));
  CIPHERD_RETURN_IF_ERROR(CheckSameDepth(operation, a.depth, b.depth));
  CIPHERD_RETURN_IF_ERROR(CheckPlainBatch(operation, a, b));
  CIPHERD_RETURN_IF_ERROR(CheckProductScale(operation, a.scale, b.scale));

  Ciphertext out = a;
  out.scale = a.scale * b.scale;
  CIPHERD_ASSIGN_OR_RETURN(out.data,
                           internal::AllocateLike(a, a.component_count(), a.limb_count(), stream));
  const kernels::PolyView factor = internal::Polynomials(b.data);
  const auto multiply = [&](int first, int count) {
    return context_.kernels().binary(context_.ring(), context_.q_limbs(a.depth),
                                     kernels::BinaryOp::kMultiply, Components(a.data, first, count),
                                     factor, Components(out.data, first, count), stream);
  };
  if (factor.outer_count == 1) {
    // One polynomial for all components and items.
    CIPHERD_RETURN_IF_ERROR(multiply(0, a.component_count()));
  } else {
    for (int c = 0; c < a.component_count(); ++c) CIPHERD_RETURN_IF_ERROR(multiply(c, 1));
  }
  return out;
}

}  // namespace cipherd::ckks
