#include "core/ckks/double_hoisting.h"

#include <array>

#include "core/base/status_macros.h"
#include "core/ckks/evaluator_checks.h"
#include "core/ckks/key_switch.h"
#include "core/kernels/rotation_sums.h"

namespace cipherd::ckks::internal {
namespace {

using kernels::RotationSums;
using value::Tensor;

// `shape` over the memory of `data`, the whole of its block, from polynomial `first` on.
absl::StatusOr<Tensor> ViewOf(const Tensor& data, int64_t first, std::vector<int64_t> shape) {
  const int64_t polynomial_bytes =
      shape[shape.size() - 2] * shape.back() * static_cast<int64_t>(sizeof(uint64_t));
  return Tensor::FromStorage(data.storage(), first * polynomial_bytes, data.dtype(),
                             std::move(shape));
}

// `shape` with an axis of `count` before the batch axes, after the components.
std::vector<int64_t> WithSteps(std::vector<int64_t> shape, int64_t count) {
  shape.insert(shape.begin() + 1, count);
  return shape;
}

RotationSums::Factor FactorOf(const Plaintext& diagonal) {
  const kernels::PolyView view = Polynomials(diagonal.data);
  return {.data = view.data, .item_stride = view.outer_count == 1 ? 0 : view.outer_stride};
}

}  // namespace

absl::Status SetRotation(const DeviceContext& context, int depth, int64_t step,
                         const KeyTable& keys, RotationSums::Rotation& rotation,
                         RotationSums& launch) {
  const KeyId id = KeyId::Rotation(step, context.parameters().slot_count());
  CIPHERD_ASSIGN_OR_RETURN(launch.key, KeySlotOf(context, depth, id, keys));
  rotation.key_slot = launch.key.slot;
  rotation.galois_element = context.parameters().RotationElement(step);
  return absl::OkStatus();
}

DoubleHoistedTransform::DoubleHoistedTransform(const DeviceContext& context, const BsgsPlan& plan,
                                               const std::map<int64_t, Plaintext>& diagonals,
                                               const Ciphertext& a, const KeyTable& keys,
                                               runtime::Stream& stream)
    : context_(context),
      plan_(plan),
      diagonals_(diagonals),
      a_(a),
      keys_(keys),
      stream_(stream),
      batch_(a.batch_count()),
      qp_count_(context.qp_limbs(a.depth).count) {}

absl::StatusOr<Tensor> DoubleHoistedTransform::Run() {
  if (!plan_.BabySteps().empty()) {
    CIPHERD_ASSIGN_OR_RETURN(digits_, ModUp(context_, a_, 1, stream_));
  }
  GiantGroup group;
  for (const Giant& giant : plan_.giants()) {
    group.push_back(&giant);
    const bool is_last = giant.first == plan_.giants().rbegin()->first;
    if (group.size() < kernels::kMaxRotationSums && !is_last) continue;
    CIPHERD_ASSIGN_OR_RETURN(const Tensor sums, BabySums(group));
    CIPHERD_RETURN_IF_ERROR(AddGiants(group, sums));
    group.clear();
  }
  return DivideByDropped(context_, context_.mod_down(a_.depth), *total_, {}, stream_);
}

absl::StatusOr<Tensor> DoubleHoistedTransform::BabySums(const GiantGroup& group) {
  const auto step_count = static_cast<int64_t>(group.size());
  CIPHERD_ASSIGN_OR_RETURN(const Tensor sums,
                           Tensor::AllocateOn(stream_, value::DType::kUint64,
                                              WithSteps(ShapeLike(a_, 2, qp_count_), step_count)));
  // The terms of each baby step, by giant step.
  std::map<int64_t, std::array<RotationSums::Factor, kernels::kMaxRotationSums>> babies;
  for (int64_t g = 0; g < step_count; ++g) {
    for (const BsgsPlan::Term& term : group[g]->second) {
      babies[term.baby][g] = FactorOf(diagonals_.at(term.offset));
    }
  }

  RotationSums launch;
  launch.sum_count = static_cast<int>(step_count);
  launch.has_factors = true;
  launch.addend_scalars = context_.p_residues(a_.depth);
  const kernels::ConstPolyView digits =
      digits_.has_value() ? Polynomials(*digits_) : kernels::PolyView();
  if (digits_.has_value()) launch.digit_count = static_cast<int>(digits_->shape().front());
  for (auto baby = babies.begin(); baby != babies.end();) {
    launch.rotation_count = 0;
    for (; baby != babies.end() && launch.rotation_count < kernels::kMaxSumRotations; ++baby) {
      const int r = launch.rotation_count++;
      launch.rotations[r] = {};
      for (int64_t g = 0; g < step_count; ++g) launch.factors[g][r] = baby->second[g];
      if (baby->first == 0) continue;
      CIPHERD_RETURN_IF_ERROR(
          SetRotation(context_, a_.depth, baby->first, keys_, launch.rotations[r], launch));
    }
    CIPHERD_RETURN_IF_ERROR(context_.kernels().rotation_sums(
        context_.ring(), context_.qp_limbs(a_.depth), launch, digits, AllComponents(a_.data),
        AllComponents(sums), stream_));
    launch.accumulates = true;
  }
  return sums;
}

absl::Status DoubleHoistedTransform::AddGiants(const GiantGroup& group, const Tensor& sums) {
  // Step 0, which comes first where there is one, is no rotation.
  const int64_t first = group.front()->first == 0 ? 1 : 0;
  const auto step_count = static_cast<int64_t>(group.size());
  if (first == step_count && !total_.has_value()) {
    CIPHERD_ASSIGN_OR_RETURN(total_, ViewOf(sums, 0, ShapeLike(a_, 2, qp_count_)));
    return absl::OkStatus();
  }
  RotationSums launch;
  kernels::ConstPolyView digits;
  std::optional<Tensor> giant_digits;
  if (first < step_count) {
    CIPHERD_ASSIGN_OR_RETURN(giant_digits, GiantDigits(sums, first));
    digits = Polynomials(*giant_digits);
    launch.digit_count = static_cast<int>(giant_digits->shape().front());
  }
  launch.accumulates = total_.has_value();
  launch.addend_scalars.fill(1);
  for (int64_t g = 0; g < step_count; ++g) {
    RotationSums::Rotation& rotation = launch.rotations[launch.rotation_count++];
    rotation.addend_item = static_cast<int32_t>(g * batch_);
    if (g < first) continue;
    rotation.digit_item = static_cast<int32_t>((g - first) * batch_);
    CIPHERD_RETURN_IF_ERROR(
        SetRotation(context_, a_.depth, group[g]->first, keys_, rotation, launch));
  }
  if (!total_.has_value()) {
    CIPHERD_ASSIGN_OR_RETURN(total_, AllocateLike(a_, 2, qp_count_, stream_));
  }
  return context_.kernels().rotation_sums(context_.ring(), context_.qp_limbs(a_.depth), launch,
                                          digits, AllComponents(sums), AllComponents(*total_),
                                          stream_);
}

absl::StatusOr<Tensor> DoubleHoistedTransform::GiantDigits(const Tensor& sums, int64_t first) {
  const int64_t step_count = sums.shape()[1];
  const int64_t rotated_count = step_count - first;
  CIPHERD_ASSIGN_OR_RETURN(const Tensor component,
                           ViewOf(sums, (step_count + first) * batch_,
                                  WithSteps(ShapeLike(a_, 1, qp_count_), rotated_count)));
  Ciphertext divided = a_;
  CIPHERD_ASSIGN_OR_RETURN(
      divided.data, DivideByDropped(context_, context_.mod_down(a_.depth), component, {}, stream_));
  return ModUp(context_, divided, 0, stream_);
}

}  // namespace cipherd::ckks::internal
