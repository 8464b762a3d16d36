#include "core/programs/operation_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/programs/constant_rules.h"

namespace cipherd::programs::internal {
namespace {

// Scales that differ by less are meant to be equal, and a rescale cannot bring them together.
constexpr double kNearbyRatio = 1024;

template <typename... Parts>
absl::Status Refuse(const Operation& operation, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(ToString(operation.kind)), " ", parts...));
}

std::string Quoted(const std::string& name) { return absl::StrCat("'", name, "'"); }

const EdgeState& StateOf(const std::string& edge, const Inference& inference) {
  return inference.edges.find(edge)->second;
}

absl::Status NeedTwoComponents(const Operation& operation, const std::string& edge,
                               const Inference& inference) {
  const int count = StateOf(edge, inference).component_count;
  if (count == 2) return absl::OkStatus();
  return Refuse(operation, "needs two components, got ", count, " of ", Quoted(edge),
                "; relinearize ", Quoted(edge), " first");
}

absl::Status NeedEqualDepths(const Operation& operation, const Inference& inference) {
  const EdgeState& a = StateOf(operation.a, inference);
  const EdgeState& b = StateOf(operation.b, inference);
  if (a.depth == b.depth) return absl::OkStatus();
  const bool drop_a = a.depth < b.depth;
  return Refuse(operation, "needs equal depths, got ", EdgeText(operation.a, a), " and ",
                EdgeText(operation.b, b), "; drop_to_depth ",
                Quoted(drop_a ? operation.a : operation.b), " to ", std::max(a.depth, b.depth),
                " first");
}

// What the operation says the scale of its result is, where it does.
absl::StatusOr<double> StatedScale(const Operation& operation, double computed) {
  const double stated = operation.result_scale;
  if (stated == 0) return computed;
  // Written so that a NaN is refused.
  if (!(std::abs(stated / computed - 1) <= kResultScaleTolerance)) {
    return Refuse(operation, "result_scale: expected ", ScaleText(computed),
                  " but for rounding, got ", ScaleText(stated));
  }
  return stated;
}

absl::StatusOr<EdgeState> SumRule(const Operation& operation, Inference& inference) {
  const EdgeState& a = StateOf(operation.a, inference);
  const EdgeState& b = StateOf(operation.b, inference);
  CIPHERD_RETURN_IF_ERROR(NeedEqualDepths(operation, inference));
  if (a.scale != b.scale) {
    const bool a_is_larger = a.scale > b.scale;
    const double ratio = a_is_larger ? a.scale / b.scale : b.scale / a.scale;
    const std::string& larger = a_is_larger ? operation.a : operation.b;
    const std::string remedy =
        ratio > kNearbyRatio ? absl::StrCat("rescale ", Quoted(larger), " first")
        : ratio - 1 <= kResultScaleTolerance
            ? absl::StrCat("state the result_scale of ", Quoted(larger), " so that they meet")
            : "state the scale of a constant before so that they meet";
    return Refuse(operation, "needs equal scales, got ", EdgeText(operation.a, a), " and ",
                  EdgeText(operation.b, b), "; ", remedy);
  }
  return a.component_count >= b.component_count ? a : b;
}

absl::StatusOr<EdgeState> SameRule(const Operation& operation, Inference& inference) {
  return StateOf(operation.a, inference);
}

absl::StatusOr<EdgeState> SumPlainRule(const Operation& operation, Inference& inference) {
  const EdgeState& a = StateOf(operation.a, inference);
  CIPHERD_RETURN_IF_ERROR(CheckSlotConstant(operation, inference, a.depth, a.scale));
  inference.constant_scales[operation.name] = a.scale;
  return a;
}

absl::StatusOr<EdgeState> MultiplyRule(const Operation& operation, Inference& inference) {
  EdgeState product = StateOf(operation.a, inference);
  CIPHERD_RETURN_IF_ERROR(NeedTwoComponents(operation, operation.a, inference));
  CIPHERD_RETURN_IF_ERROR(NeedTwoComponents(operation, operation.b, inference));
  CIPHERD_RETURN_IF_ERROR(NeedEqualDepths(operation, inference));
  product.scale *= StateOf(operation.b, inference).scale;
  product.component_count = 3;
  return product;
}

absl::StatusOr<EdgeState> SquareRule(const Operation& operation, Inference& inference) {
  EdgeState product = StateOf(operation.a, inference);
  CIPHERD_RETURN_IF_ERROR(NeedTwoComponents(operation, operation.a, inference));
  product.scale *= product.scale;
  product.component_count = 3;
  return product;
}

absl::StatusOr<EdgeState> MultiplyPlainRule(const Operation& operation, Inference& inference) {
  EdgeState product = StateOf(operation.a, inference);
  CIPHERD_ASSIGN_OR_RETURN(const double scale,
                           MultiplierScale(operation, inference.parameters, product));
  CIPHERD_RETURN_IF_ERROR(CheckSlotConstant(operation, inference, product.depth, scale));
  inference.constant_scales[operation.name] = scale;
  CIPHERD_ASSIGN_OR_RETURN(product.scale, StatedScale(operation, product.scale * scale));
  return product;
}

absl::StatusOr<EdgeState> RelinearizeRule(const Operation& operation, Inference& inference) {
  EdgeState state = StateOf(operation.a, inference);
  if (state.component_count != 3) {
    return Refuse(operation, "needs three components, got ", state.component_count, " of ",
                  Quoted(operation.a), "; leave it out");
  }
  inference.keys.push_back(ckks::KeyId::Relinearization());
  state.component_count = 2;
  return state;
}

absl::StatusOr<EdgeState> RescaleRule(const Operation& operation, Inference& inference) {
  EdgeState state = StateOf(operation.a, inference);
  if (state.depth == inference.parameters.max_depth()) {
    return Refuse(operation, "needs a depth below the last one, ", state.depth, ", got ",
                  EdgeText(operation.a, state), "; use a context of more rescale_groups");
  }
  CIPHERD_ASSIGN_OR_RETURN(
      state.scale,
      StatedScale(operation, state.scale / inference.parameters.RescaleDivisor(state.depth)));
  ++state.depth;
  return state;
}

absl::StatusOr<EdgeState> DropRule(const Operation& operation, Inference& inference) {
  EdgeState state = StateOf(operation.a, inference);
  if (operation.depth <= state.depth || operation.depth > inference.parameters.max_depth()) {
    return Refuse(operation, "needs a depth above that of ", EdgeText(operation.a, state),
                  " and at most ", inference.parameters.max_depth(), ", got ", operation.depth);
  }
  state.depth = operation.depth;
  return state;
}

absl::StatusOr<EdgeState> RotateRule(const Operation& operation, Inference& inference) {
  CIPHERD_RETURN_IF_ERROR(NeedTwoComponents(operation, operation.a, inference));
  const int64_t slot_count = inference.parameters.slot_count();
  if (operation.step % slot_count != 0) {
    inference.keys.push_back(ckks::KeyId::Rotation(operation.step, slot_count));
  }
  return StateOf(operation.a, inference);
}

absl::StatusOr<EdgeState> ConjugateRule(const Operation& operation, Inference& inference) {
  CIPHERD_RETURN_IF_ERROR(NeedTwoComponents(operation, operation.a, inference));
  inference.keys.push_back(ckks::KeyId::Conjugation());
  return StateOf(operation.a, inference);
}

absl::StatusOr<EdgeState> LinearTransformRule(const Operation& operation, Inference& inference) {
  EdgeState product = StateOf(operation.a, inference);
  CIPHERD_RETURN_IF_ERROR(NeedTwoComponents(operation, operation.a, inference));
  CIPHERD_ASSIGN_OR_RETURN(const double scale,
                           MultiplierScale(operation, inference.parameters, product));
  CIPHERD_ASSIGN_OR_RETURN(std::vector<int64_t> offsets,
                           CheckDiagonals(operation, inference, product.depth, scale));
  absl::StatusOr<ckks::BsgsPlan> plan = ckks::BsgsPlan::Make(
      std::move(offsets), inference.parameters.slot_count(), operation.baby_span);
  if (!plan.ok()) {
    return Refuse(operation, "by constant ", Quoted(operation.offsets), ": ",
                  std::string(plan.status().message()));
  }
  const std::vector<ckks::KeyId> keys = plan->Keys();
  inference.keys.insert(inference.keys.end(), keys.begin(), keys.end());
  inference.plans.emplace(operation.name, *std::move(plan));
  inference.constant_scales[operation.name] = scale;
  CIPHERD_ASSIGN_OR_RETURN(product.scale, StatedScale(operation, product.scale * scale));
  return product;
}

using Rule = absl::StatusOr<EdgeState> (*)(const Operation&, Inference&);

// By OperationKind.
constexpr std::array<Rule, 14> kRules = {
    SumRule,            // kAdd
    SumRule,            // kSubtract
    SameRule,           // kNegate
    SumPlainRule,       // kAddPlain
    SumPlainRule,       // kSubtractPlain
    MultiplyRule,       // kMultiply
    SquareRule,         // kSquare
    MultiplyPlainRule,  // kMultiplyPlain
    RelinearizeRule,    // kRelinearize
    RescaleRule,        // kRescale
    DropRule,           // kDropToDepth
    RotateRule,         // kRotate
    ConjugateRule,      // kConjugate
    LinearTransformRule,
};
static_assert(static_cast<size_t>(OperationKind::kLinearTransform) + 1 == kRules.size());

bool StatesItsScale(OperationKind kind) {
  return kind == OperationKind::kMultiplyPlain || kind == OperationKind::kLinearTransform ||
         kind == OperationKind::kRescale;
}

}  // namespace

absl::StatusOr<EdgeState> ApplyRule(const Operation& operation, Inference& inference) {
  if (operation.result_scale != 0 && !StatesItsScale(operation.kind)) {
    return Refuse(operation, "takes no result_scale, got ", operation.result_scale);
  }
  CIPHERD_ASSIGN_OR_RETURN(const EdgeState result,
                           kRules[static_cast<size_t>(operation.kind)](operation, inference));
  CIPHERD_RETURN_IF_ERROR(CheckScale(inference.parameters, result.scale, result.depth));
  return result;
}

}  // namespace cipherd::programs::internal
