// What a matrix costs as a linear transform, by where the elements of its operand and its result
// stand. Costs are counted in baby steps of a linear transform (ckks::BsgsPlan).
//
// A matrix takes one diagonal for each distinct offset of an element of its operand from one of its
// result. Positions may be periodic, and then offsets count modulo a period:
//   - where the operand has period R, modulo R;
//   - where the result has period B < R: each of the R / B blocks of B positions sums what the
//     diagonals bring there, and log2(R / B) rotations add the blocks, modulo B.
// An operand of period T that is 0 beside its elements can be made one of period R < T by
// log2(T / R) rotations before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/planning/sparse_matrix.h"

namespace cipherd::planning {

// A rotation alone, which raises digits and divides by P as a giant step does.
inline constexpr double kRotationCost = 3;
// A product with a diagonal, which is also memory.
inline constexpr double kDiagonalCost = 0.2;
// One rescaling group more for everything that comes before.
inline constexpr double kDepthCost = 30;

// How a matrix is brought between two placements.
struct Packing {
  // The period of the operand as the transform reads it: its own, or a smaller one.
  int64_t input_period = 1;
  double cost = 0;
};

// The offsets of a matrix between two sets of positions, and what they cost modulo each period.
class PackingCosts {
 public:
  // `inputs` and `outputs` give the position of each element of operand and result, below
  // `position_count`, a power of two. Zeros of the matrix are left out.
  PackingCosts(const SparseMatrix& matrix, std::span<const int32_t> inputs,
               std::span<const int32_t> outputs, int64_t position_count);

  // The cheapest way. `least_input_period` is the least that the operand can be brought to;
  // `input_period` where it cannot be brought to another. All periods are powers of two.
  Packing Best(int64_t input_period, int64_t least_input_period, int64_t output_period) const;

 private:
  // Diagonals, baby and giant steps with offsets modulo `period`.
  double TransformCost(int64_t period) const;

  int64_t position_count_;
  std::vector<int64_t> offsets_;
  // Every element of the operand is read once, with factor 1: with the one offset 0 it is a sum.
  bool is_sum_;
  // By log2 of the period; negative: not computed yet.
  mutable std::vector<double> transform_costs_;
};

// `offsets`, ascending and distinct, modulo `period`: ascending and distinct.
std::vector<int64_t> FoldOffsets(std::span<const int64_t> offsets, int64_t period);

// The least cost of a matrix between operand and result that begin at position 0 without gaps.
double EstimateCost(const SparseMatrix& matrix);

}  // namespace cipherd::planning
