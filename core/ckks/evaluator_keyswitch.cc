// Evaluator: relinearization.
#include "core/base/status_macros.h"
#include "core/ckks/device_context.h"
#include "core/ckks/evaluator.h"
#include "core/ckks/evaluator_checks.h"
#include "core/ckks/key_switch.h"

namespace cipherd::ckks {

absl::StatusOr<Ciphertext> Evaluator::Relinearize(const Ciphertext& a, const KeyTable& keys,
                                                  runtime::Stream& stream) const {
  const internal::Operation operation{context_, "Relinearize", stream};
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckNtt(operation, "ciphertext a", a.domain, "convert it (ToNtt)"));
  CIPHERD_RETURN_IF_ERROR(CheckComponents(operation, "ciphertext a", a, 3, "use it as it is"));
  // Before anything is enqueued.
  CIPHERD_RETURN_IF_ERROR(keys.layout.SlotOf(KeyId::Relinearization()).status());

  CIPHERD_ASSIGN_OR_RETURN(const value::Tensor digits, internal::ModUp(context_, a, 2, stream));
  Ciphertext out = a;
  CIPHERD_ASSIGN_OR_RETURN(out.data, internal::SwitchKey(context_, a, digits, /*galois_element=*/1,
                                                         KeyId::Relinearization(), keys, stream));
  CIPHERD_RETURN_IF_ERROR(context_.kernels().binary(
      context_.ring(), context_.q_limbs(a.depth), kernels::BinaryOp::kAdd,
      internal::AllComponents(out.data), internal::Components(a.data, 0, 2),
      internal::AllComponents(out.data), stream));
  return out;
}

}  // namespace cipherd::ckks
