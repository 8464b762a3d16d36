#include "core/ckks/linear_transform.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/device_context.h"
#include "core/ckks/evaluator_checks.h"
#include "core/ckks/key_switch.h"
#include "core/ckks/value_checks.h"

namespace cipherd::ckks {
namespace {

using internal::AllComponents;
using internal::Components;
using internal::Operation;
using value::Tensor;

// Rotations that a span needs, or `limit` as soon as there are no fewer. `offsets` ascending;
// `last_span` holds, by baby step, the last span that met it.
int64_t CountRotations(const std::vector<int64_t>& offsets, int64_t span, int64_t limit,
                       std::vector<int64_t>& last_span) {
  int64_t count = 0;
  int64_t last_giant = 0;
  for (int64_t offset : offsets) {
    const int64_t baby = offset % span;
    const int64_t giant = offset - baby;
    if (giant != last_giant) {
      ++count;
      last_giant = giant;
    }
    if (baby != 0 && last_span[baby] != span) {
      ++count;
      last_span[baby] = span;
    }
    if (count >= limit) return limit;
  }
  return count;
}

int64_t BestSpan(const std::vector<int64_t>& offsets, int64_t slot_count) {
  std::vector<int64_t> last_span(slot_count, 0);
  int64_t best_span = 1;
  int64_t best = CountRotations(offsets, 1, INT64_MAX, last_span);
  for (int64_t span = 2; span <= slot_count && best > 0; ++span) {
    const int64_t count = CountRotations(offsets, span, best, last_span);
    if (count < best) {
      best = count;
      best_span = span;
    }
  }
  return best_span;
}

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
      CIPHERD_RETURN_IF_ERROR(CheckOperand(operation, role, diagonal));
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

}  // namespace

absl::StatusOr<BsgsPlan> BsgsPlan::Make(std::vector<int64_t> offsets, int64_t slot_count,
                                        int64_t baby_span) {
  if (slot_count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("slot_count: expected at least 1, got ", slot_count));
  }
  if (baby_span < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("baby_span: expected at least 0, got ", baby_span));
  }
  if (offsets.empty()) {
    return absl::InvalidArgumentError("offsets: expected at least 1 diagonal, got 0");
  }
  std::sort(offsets.begin(), offsets.end());
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < 0 || offsets[i] >= slot_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("offsets: expected numbers in [0, ", slot_count, "), got ", offsets[i]));
    }
    if (i > 0 && offsets[i] == offsets[i - 1]) {
      return absl::InvalidArgumentError(
          absl::StrCat("offsets: expected distinct numbers, got ", offsets[i], " twice"));
    }
  }
  BsgsPlan plan;
  plan.slot_count_ = slot_count;
  plan.baby_span_ = baby_span == 0 ? BestSpan(offsets, slot_count) : baby_span;
  for (int64_t offset : offsets) {
    const int64_t baby = offset % plan.baby_span_;
    plan.giants_[offset - baby].push_back({.offset = offset, .baby = baby});
  }
  return plan;
}

std::vector<int64_t> BsgsPlan::BabySteps() const {
  std::set<int64_t> steps;
  for (const auto& [giant, terms] : giants_) {
    for (const Term& term : terms) {
      if (term.baby != 0) steps.insert(term.baby);
    }
  }
  return {steps.begin(), steps.end()};
}

std::vector<int64_t> BsgsPlan::GiantSteps() const {
  std::vector<int64_t> steps;
  for (const auto& [giant, terms] : giants_) {
    if (giant != 0) steps.push_back(giant);
  }
  return steps;
}

std::vector<KeyId> BsgsPlan::Keys() const {
  std::vector<KeyId> keys;
  for (int64_t step : BabySteps()) keys.push_back(KeyId::Rotation(step, slot_count_));
  for (int64_t step : GiantSteps()) keys.push_back(KeyId::Rotation(step, slot_count_));
  return KeyLayout(std::move(keys)).ids();
}

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

  const double scale = a.scale * diagonals.at(plan.giants().begin()->second.front().offset).scale;
  RotationSum sum(operation);
  Ciphertext like;
  for (const auto& [giant, terms] : plan.giants()) {
    CIPHERD_ASSIGN_OR_RETURN(like, InnerSum(operation, terms, diagonals, rotated, scale));
    CIPHERD_RETURN_IF_ERROR(sum.Add(like, giant, keys));
  }
  return sum.Finish(like);
}

}  // namespace cipherd::ckks
