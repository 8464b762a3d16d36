// Evaluator: relinearization.
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/device_context.h"
#include "core/ckks/evaluator.h"
#include "core/ckks/evaluator_checks.h"
#include "core/ckks/key_switch.h"

namespace cipherd::ckks {
namespace {

using internal::Operation;

absl::Status CheckRelinearizable(const Operation& operation, const Ciphertext& a,
                                 const KeyTable& keys) {
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckNtt(operation, "ciphertext a", a.domain, "convert it (ToNtt)"));
  CIPHERD_RETURN_IF_ERROR(CheckComponents(operation, "ciphertext a", a, 3, "use it as it is"));
  // Before anything is enqueued.
  return keys.layout.SlotOf(KeyId::Relinearization()).status();
}

// (c0 + u0, c1 + u1), u the key switch of c2 divided by what `drop` drops, c divided by its head.
absl::StatusOr<value::Tensor> Relinearized(const Operation& operation, const Ciphertext& a,
                                           const LimbDrop& drop, const KeyTable& keys) {
  CIPHERD_ASSIGN_OR_RETURN(const value::Tensor product,
                           internal::SwitchKey(operation.context, a, 2, /*galois_element=*/1,
                                               KeyId::Relinearization(), keys, operation.stream));
  const kernels::DropAddend addend = {.poly = internal::Components(a.data, 0, 2)};
  return internal::DivideByDropped(operation.context, drop, product, addend, operation.stream);
}

}  // namespace

absl::StatusOr<Ciphertext> Evaluator::Relinearize(const Ciphertext& a, const KeyTable& keys,
                                                  runtime::Stream& stream) const {
  const Operation operation{context_, "Relinearize", stream};
  CIPHERD_RETURN_IF_ERROR(CheckRelinearizable(operation, a, keys));
  Ciphertext out = a;
  CIPHERD_ASSIGN_OR_RETURN(out.data, Relinearized(operation, a, context_.mod_down(a.depth), keys));
  return out;
}

absl::StatusOr<Ciphertext> Evaluator::RelinearizeAndRescale(const Ciphertext& a,
                                                            const KeyTable& keys,
                                                            runtime::Stream& stream) const {
  const Operation operation{context_, "RelinearizeAndRescale", stream};
  const ContextParameters& parameters = context_.parameters();
  CIPHERD_RETURN_IF_ERROR(CheckRelinearizable(operation, a, keys));
  if (a.depth == parameters.max_depth()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "RelinearizeAndRescale: ciphertext a: depth: expected below ", parameters.max_depth(),
        ", got ", a.depth, ", the last one; use a context of more depths"));
  }
  Ciphertext out = a;
  out.depth = a.depth + 1;
  out.scale = a.scale / parameters.RescaleDivisor(a.depth);
  CIPHERD_ASSIGN_OR_RETURN(out.data,
                           Relinearized(operation, a, context_.mod_down_rescale(a.depth), keys));
  return out;
}

}  // namespace cipherd::ckks
