// Evaluator: automorphisms of slots.
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/device_context.h"
#include "core/ckks/evaluator.h"
#include "core/ckks/evaluator_checks.h"
#include "core/ckks/key_switch.h"
#include "core/ckks/value_checks.h"

namespace cipherd::ckks {
namespace {

using internal::AllComponents;
using internal::Components;
using internal::Operation;

absl::Status CheckRotatable(const Operation& operation, const Ciphertext& a) {
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckNtt(operation, "ciphertext a", a.domain, "convert it (ToNtt)"));
  return CheckComponents(operation, "ciphertext a", a, 2, "relinearize it (Relinearize)");
}

// (c0, c1) sent through the automorphism of an element, `product` being the key switch of c1 over
// QP that went through it too.
absl::StatusOr<Ciphertext> Automorphism(const DeviceContext& context, const Ciphertext& a,
                                        const value::Tensor& product, uint32_t galois_element,
                                        runtime::Stream& stream) {
  Ciphertext out = a;
  const kernels::DropAddend addend = {.poly = Components(a.data, 0, 1),
                                      .galois_element = galois_element};
  CIPHERD_ASSIGN_OR_RETURN(out.data, internal::DivideByDropped(context, context.mod_down(a.depth),
                                                               product, addend, stream));
  return out;
}

absl::StatusOr<Ciphertext> Copy(const DeviceContext& context, const Ciphertext& a,
                                runtime::Stream& stream) {
  Ciphertext out = a;
  CIPHERD_ASSIGN_OR_RETURN(out.data,
                           internal::AllocateLike(a, a.component_count(), a.limb_count(), stream));
  CIPHERD_RETURN_IF_ERROR(context.kernels().copy(
      context.ring(), a.limb_count(), AllComponents(a.data), AllComponents(out.data), stream));
  return out;
}

}  // namespace

absl::StatusOr<Ciphertext> Evaluator::Rotate(const Ciphertext& a, int64_t step,
                                             const KeyTable& keys, runtime::Stream& stream) const {
  CIPHERD_RETURN_IF_ERROR(CheckRotatable({context_, "Rotate", stream}, a));
  const KeyId id = KeyId::Rotation(step, context_.parameters().slot_count());
  if (id.rotation_step == 0) return Copy(context_, a, stream);
  // Before anything is enqueued.
  CIPHERD_RETURN_IF_ERROR(keys.layout.SlotOf(id).status());
  const uint32_t element = context_.parameters().RotationElement(step);
  CIPHERD_ASSIGN_OR_RETURN(const value::Tensor product,
                           internal::SwitchKey(context_, a, 1, element, id, keys, stream));
  return Automorphism(context_, a, product, element, stream);
}

absl::StatusOr<Ciphertext> Evaluator::Conjugate(const Ciphertext& a, const KeyTable& keys,
                                                runtime::Stream& stream) const {
  CIPHERD_RETURN_IF_ERROR(CheckRotatable({context_, "Conjugate", stream}, a));
  CIPHERD_RETURN_IF_ERROR(keys.layout.SlotOf(KeyId::Conjugation()).status());
  const uint32_t element = context_.parameters().ConjugationElement();
  CIPHERD_ASSIGN_OR_RETURN(
      const value::Tensor product,
      internal::SwitchKey(context_, a, 1, element, KeyId::Conjugation(), keys, stream));
  return Automorphism(context_, a, product, element, stream);
}

absl::StatusOr<HoistedCiphertext> Evaluator::Hoist(const Ciphertext& a,
                                                   runtime::Stream& stream) const {
  CIPHERD_RETURN_IF_ERROR(CheckRotatable({context_, "Hoist", stream}, a));
  HoistedCiphertext hoisted{.source = a, .digits = {}};
  CIPHERD_ASSIGN_OR_RETURN(hoisted.digits, internal::ModUp(context_, a, 1, stream));
  return hoisted;
}

absl::StatusOr<Ciphertext> Evaluator::RotateHoisted(const HoistedCiphertext& a, int64_t step,
                                                    const KeyTable& keys,
                                                    runtime::Stream& stream) const {
  CIPHERD_RETURN_IF_ERROR(CheckRotatable({context_, "RotateHoisted", stream}, a.source));
  const int depth = a.source.depth;
  const std::vector<int64_t> expected =
      internal::ShapeLike(a.source, static_cast<int64_t>(context_.mod_up(depth).digits.size()),
                          context_.qp_limbs(depth).count);
  if (a.digits.shape() != expected) {
    return absl::InvalidArgumentError(absl::StrCat(
        "RotateHoisted: digits: expected ", internal::ListOf(expected), " at depth ", depth,
        ", got ", internal::ListOf(a.digits.shape()), "; hoist the ciphertext (Hoist)"));
  }
  const KeyId id = KeyId::Rotation(step, context_.parameters().slot_count());
  if (id.rotation_step == 0) return Copy(context_, a.source, stream);
  const uint32_t element = context_.parameters().RotationElement(step);
  CIPHERD_ASSIGN_OR_RETURN(
      const value::Tensor product,
      internal::AllocateLike(a.source, 2, context_.qp_limbs(depth).count, stream));
  CIPHERD_RETURN_IF_ERROR(
      internal::KeyInnerProduct(context_, a.source, a.digits, element, id, keys, product, stream));
  return Automorphism(context_, a.source, product, element, stream);
}

}  // namespace cipherd::ckks
