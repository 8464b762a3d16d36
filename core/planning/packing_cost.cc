#include "core/planning/packing_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/ckks/bsgs_plan.h"
#include "core/planning/element_placement.h"

namespace cipherd::planning {
namespace {

// Above it the best span is not searched for: any number of steps near the root will do.
constexpr size_t kMostSearchedOffsets = 512;

int Log2(int64_t power) { return std::countr_zero(static_cast<uint64_t>(power)); }

bool IsSum(const SparseMatrix& matrix) {
  if (matrix.entry_count() != matrix.column_count) return false;
  std::vector<bool> is_read(matrix.column_count, false);
  for (int64_t i = 0; i < matrix.entry_count(); ++i) {
    if (matrix.values[i] != 1 || is_read[matrix.columns[i]]) return false;
    is_read[matrix.columns[i]] = true;
  }
  return true;
}

}  // namespace

PackingCosts::PackingCosts(const SparseMatrix& matrix, std::span<const int32_t> inputs,
                           std::span<const int32_t> outputs, int64_t position_count)
    : position_count_(position_count),
      is_sum_(IsSum(matrix)),
      transform_costs_(Log2(position_count) + 1, -1.0) {
  std::vector<bool> is_used(position_count, false);
  for (int64_t row = 0; row < matrix.row_count; ++row) {
    for (int64_t i = matrix.row_begin[row]; i < matrix.row_begin[row + 1]; ++i) {
      if (matrix.values[i] == 0) continue;
      is_used[(inputs[matrix.columns[i]] - outputs[row]) & (position_count - 1)] = true;
    }
  }
  for (int64_t offset = 0; offset < position_count; ++offset) {
    if (is_used[offset]) offsets_.push_back(offset);
  }
  // A matrix of zeros is multiplied by as well.
  if (offsets_.empty()) offsets_.push_back(0);
}

double PackingCosts::TransformCost(int64_t period) const {
  double& cost = transform_costs_[Log2(period)];
  if (cost >= 0) return cost;
  const std::vector<int64_t> folded = FoldOffsets(offsets_, period);
  const double count = static_cast<double>(folded.size());
  cost = kDiagonalCost * count;
  if (folded.size() > kMostSearchedOffsets) {
    cost += 2 * std::sqrt(ckks::BsgsPlan::kGiantStepCost * count);
  } else {
    const ckks::BsgsPlan plan = *ckks::BsgsPlan::Make(folded, position_count_, 0);
    cost += static_cast<double>(plan.BabySteps().size()) +
            static_cast<double>(ckks::BsgsPlan::kGiantStepCost * plan.GiantSteps().size());
  }
  return cost;
}

Packing PackingCosts::Best(int64_t input_period, int64_t least_input_period,
                           int64_t output_period) const {
  const auto cost_at = [&](int64_t period) {
    const int64_t rotations =
        Log2(input_period / period) + (period > output_period ? Log2(period / output_period) : 0);
    const int64_t modulus = std::min(period, output_period);
    double cost = kRotationCost * static_cast<double>(rotations) + TransformCost(modulus);
    // Only rotations and sums: no product, no depth.
    if (is_sum_ && FoldOffsets(offsets_, modulus).back() == 0) cost -= kDepthCost;
    return cost;
  };
  Packing best = {input_period, cost_at(input_period)};
  for (int64_t period = least_input_period; period < std::min(input_period, output_period);
       period *= 2) {
    if (const double cost = cost_at(period); cost < best.cost) best = {period, cost};
  }
  return best;
}

std::vector<int64_t> FoldOffsets(std::span<const int64_t> offsets, int64_t period) {
  std::vector<int64_t> folded;
  folded.reserve(offsets.size());
  for (int64_t offset : offsets) folded.push_back(offset & (period - 1));
  std::sort(folded.begin(), folded.end());
  folded.erase(std::unique(folded.begin(), folded.end()), folded.end());
  return folded;
}

double EstimateCost(const SparseMatrix& matrix) {
  const int64_t input_period = PowerOfTwoFor(matrix.column_count);
  const int64_t output_period = PowerOfTwoFor(matrix.row_count);
  const int64_t position_count = std::max(input_period, output_period);
  std::vector<int32_t> positions(position_count);
  std::iota(positions.begin(), positions.end(), 0);
  const PackingCosts costs(matrix, positions, positions, position_count);
  double best = INFINITY;
  for (int64_t period = output_period; period <= position_count; period *= 2) {
    best = std::min(best, costs.Best(position_count, input_period, period).cost);
  }
  return best;
}

}  // namespace cipherd::planning
