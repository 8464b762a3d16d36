#include "core/ckks/linear_transform.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/device_context.h"
#include "core/ckks/double_hoisting.h"
#include "core/ckks/evaluator_checks.h"
#include "core/ckks/key_switch.h"
#include "core/ckks/value_checks.h"

namespace cipherd::ckks {
namespace {

using internal::AllComponents;
using internal::Components;
using internal::Operation;
using value::Tensor;

absl::Status CheckDiagonals(const Operation& operation, const BsgsPlan& plan,
                            const std::map<int64_t, Plaintext>& diagonals, const Ciphertext& a) {
  const Plaintext* first = nullptr;
  for (const auto& [giant, terms] : plan.giants()) {
    for (const BsgsPlan::Term& term : terms) {
      const std::string role = absl::StrCat("diagonals[", term.offset, "]");
      const auto found = diagonals.find(term.offset);
      if (found == diagonals.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(std::string(operation.name), ": ", role, " is missing"));
      }
      const Plaintext& diagonal = found->second;
      if (first == nullptr) first = &diagonal;
      CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, role, diagonal, plan.diagonal_basis()));
      CIPHERD_RETURN_IF_ERROR(
          CheckNtt(operation, role, diagonal.domain, "encode it in the NTT domain (Encoder)"));
      CIPHERD_RETURN_IF_ERROR(CheckSameDepth(operation, a.depth, diagonal.depth));
      CIPHERD_RETURN_IF_ERROR(CheckPlainBatch(operation, a, diagonal));
      CIPHERD_RETURN_IF_ERROR(CheckSameScale(operation, first->scale, diagonal.scale));
    }
  }
  return CheckProductScale(operation, a.scale, first->scale);
}

// All keys of the plan are in the table: before anything is enqueued.
absl::Status CheckKeys(const BsgsPlan& plan, const KeyTable& keys) {
  for (const KeyId& id : plan.Keys()) CIPHERD_RETURN_IF_ERROR(keys.layout.SlotOf(id).status());
  return absl::OkStatus();
}

// Sum over `terms` of diagonal · rotated, every component of it.
absl::StatusOr<Ciphertext> InnerSum(const Operation& operation,
                                    const std::vector<BsgsPlan::Term>& terms,
                                    const std::map<int64_t, Plaintext>& diagonals,
                                    const std::map<int64_t, Ciphertext>& rotated, double scale) {
  const DeviceContext& context = operation.context;
  const Ciphertext& like = rotated.begin()->second;
  const kernels::LimbPrimes& limbs = context.q_limbs(like.depth);
  Ciphertext sum = like;
  sum.scale = scale;
  CIPHERD_ASSIGN_OR_RETURN(sum.data,
                           internal::AllocateLike(like, 2, like.limb_count(), operation.stream));
  for (size_t i = 0; i < terms.size(); ++i) {
    const Tensor& source = rotated.at(terms[i].baby).data;
    const kernels::PolyView factor = internal::Polynomials(diagonals.at(terms[i].offset).data);
    // One unbatched diagonal is broadcast over everything; a batched one goes component by
    // component.
    const int pieces = factor.outer_count == 1 ? 1 : 2;
    for (int c = 0; c < 2; c += 2 / pieces) {
      const kernels::PolyView in = Components(source, c, 2 / pieces);
      const kernels::PolyView out = Components(sum.data, c, 2 / pieces);
      CIPHERD_RETURN_IF_ERROR(
          i == 0 ? context.kernels().binary(context.ring(), limbs, kernels::BinaryOp::kMultiply, in,
                                            factor, out, operation.stream)
                 : context.kernels().multiply_add(context.ring(), limbs, in, factor, out,
                                                  operation.stream));
    }
  }
  return sum;
}

// Sums of rotated ciphertexts whose parts over QP are divided by P once, at the end.
class RotationSum {
 public:
  explicit RotationSum(const Operation& operation) : operation_(operation) {}

  // Adds `a` rotated by `step`, or as it is for step 0.
  absl::Status Add(const Ciphertext& a, int64_t step, const KeyTable& keys) {
    if (step == 0) {
      whole_ = a;
      return absl::OkStatus();
    }
    const DeviceContext& context = operation_.context;
    runtime::Stream& stream = operation_.stream;
    const uint32_t element = context.parameters().RotationElement(step);
    const KeyId id = KeyId::Rotation(step, context.parameters().slot_count());
    CIPHERD_ASSIGN_OR_RETURN(Tensor switched,
                             internal::SwitchKey(context, a, 1, element, id, keys, stream));
    CIPHERD_ASSIGN_OR_RETURN(Tensor permuted, internal::AllocateLike(a, 1, a.limb_count(), stream));
    CIPHERD_RETURN_IF_ERROR(context.kernels().automorphism_ntt(
        context.ring(), context.q_limbs(a.depth), element, Components(a.data, 0, 1),
        AllComponents(permuted), stream));
    CIPHERD_RETURN_IF_ERROR(Accumulate(context.qp_limbs(a.depth), std::move(switched), switched_));
    return Accumulate(context.q_limbs(a.depth), std::move(permuted), permuted_);
  }

  // The sum of everything added, at least one.
  absl::StatusOr<Ciphertext> Finish(const Ciphertext& like) {
    if (!switched_.has_value()) return *whole_;
    const DeviceContext& context = operation_.context;
    Ciphertext out = like;
    CIPHERD_ASSIGN_OR_RETURN(
        out.data, internal::DivideByDropped(context, context.mod_down(like.depth), *switched_, {},
                                            operation_.stream));
    const kernels::LimbPrimes& limbs = context.q_limbs(like.depth);
    CIPHERD_RETURN_IF_ERROR(AddInto(limbs, AllComponents(*permuted_), Components(out.data, 0, 1)));
    if (whole_.has_value()) {
      CIPHERD_RETURN_IF_ERROR(AddInto(limbs, AllComponents(whole_->data), AllComponents(out.data)));
    }
    return out;
  }

 private:
  absl::Status AddInto(const kernels::LimbPrimes& limbs, kernels::PolyView term,
                       kernels::PolyView sum) {
    return operation_.context.kernels().binary(operation_.context.ring(), limbs,
                                               kernels::BinaryOp::kAdd, sum, term, sum,
                                               operation_.stream);
  }

  absl::Status Accumulate(const kernels::LimbPrimes& limbs, Tensor term,
                          std::optional<Tensor>& sum) {
    if (!sum.has_value()) {
      sum = std::move(term);
      return absl::OkStatus();
    }
    return AddInto(limbs, AllComponents(term), AllComponents(*sum));
  }

  const Operation& operation_;
  std::optional<Ciphertext> whole_;  // of step 0
  std::optional<Tensor> switched_;   // [2, batch…, QP limbs, N]
  std::optional<Tensor> permuted_;   // [1, batch…, Q limbs, N]: component 0
};

// Baby steps as ciphertexts over Q, from one ModUp.
absl::StatusOr<Ciphertext> HoistOnce(const Evaluator& evaluator, const Operation& operation,
                                     const BsgsPlan& plan,
                                     const std::map<int64_t, Plaintext>& diagonals,
                                     const Ciphertext& a, const KeyTable& keys, double scale) {
  runtime::Stream& stream = operation.stream;
  // The input rotated by every baby step.
  std::map<int64_t, Ciphertext> rotated;
  rotated.emplace(0, a);
  if (const std::vector<int64_t> steps = plan.BabySteps(); !steps.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(const HoistedCiphertext hoisted, evaluator.Hoist(a, stream));
    for (int64_t step : steps) {
      CIPHERD_ASSIGN_OR_RETURN(Ciphertext turned,
                               evaluator.RotateHoisted(hoisted, step, keys, stream));
      rotated.emplace(step, std::move(turned));
    }
  }
  RotationSum sum(operation);
  Ciphertext like;
  for (const auto& [giant, terms] : plan.giants()) {
    CIPHERD_ASSIGN_OR_RETURN(like, InnerSum(operation, terms, diagonals, rotated, scale));
    CIPHERD_RETURN_IF_ERROR(sum.Add(like, giant, keys));
  }
  return sum.Finish(like);
}

}  // namespace

absl::StatusOr<Ciphertext> ApplyLinearTransform(const Evaluator& evaluator, const BsgsPlan& plan,
                                                const std::map<int64_t, Plaintext>& diagonals,
                                                const Ciphertext& a, const KeyTable& keys,
                                                runtime::Stream& stream) {
  const DeviceContext& context = evaluator.context();
  const Operation operation{context, "ApplyLinearTransform", stream};
  CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, "ciphertext a", a));
  CIPHERD_RETURN_IF_ERROR(CheckNtt(operation, "ciphertext a", a.domain, "convert it (ToNtt)"));
  CIPHERD_RETURN_IF_ERROR(
      CheckComponents(operation, "ciphertext a", a, 2, "relinearize it (Relinearize)"));
  if (plan.giants().empty() || plan.slot_count() != context.parameters().slot_count()) {
    return absl::InvalidArgumentError(absl::StrCat("ApplyLinearTransform: plan: expected one of ",
                                                   context.parameters().slot_count(),
                                                   " slots, got ", plan.slot_count()));
  }
  CIPHERD_RETURN_IF_ERROR(CheckDiagonals(operation, plan, diagonals, a));
  CIPHERD_RETURN_IF_ERROR(CheckKeys(plan, keys));

  const double scale = a.scale * diagonals.at(plan.giants().begin()->second.front().offset).scale;
  if (!plan.hoists_twice()) return HoistOnce(evaluator, operation, plan, diagonals, a, keys, scale);
  Ciphertext out = a;
  out.scale = scale;
  CIPHERD_ASSIGN_OR_RETURN(
      out.data, internal::DoubleHoistedTransform(context, plan, diagonals, a, keys, stream).Run());
  return out;
}

}  // namespace cipherd::ckks
