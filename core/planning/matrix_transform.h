// A matrix between two placements as diagonals of a linear transform.
//
//   const MatrixTransform transform = MakeMatrixTransform(matrix, source, input_period, target);
//   // z[p] = sum over i of diagonals[i][p mod length] · a[p + offsets[i]]; where the period of z
//   // exceeds the target's, the blocks of z add up to the result (packing_cost.h)
//
// A plain value; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "core/planning/element_placement.h"
#include "core/planning/sparse_matrix.h"

namespace cipherd::planning {

struct MatrixTransform {
  // Of the diagonals and of z: the larger of the input's and the target's period.
  int64_t length = 1;
  // Ascending, distinct, in [0, min(input period, target period)).
  std::vector<int64_t> offsets;
  // offsets.size() rows of `length`.
  std::vector<double> diagonals;

  // Whether it only moves what is there: one diagonal, which is 1 wherever an element of `source`
  // comes to stand. Right where the source is 0 beside its elements.
  bool IsRotation(const ElementPlacement& source, int64_t input_period) const;
  // The number that every element is multiplied by, where the only offset is 0 and it is one
  // number; else 0. Requires as IsRotation that the source is 0 beside its elements.
  double CommonFactor(const ElementPlacement& source, int64_t input_period) const;
};

// `input_period` is the source's, or less where its elements stay apart. Zeros of the matrix make
// no diagonals; a matrix of zeros has one of them.
MatrixTransform MakeMatrixTransform(const SparseMatrix& matrix, const ElementPlacement& source,
                                    int64_t input_period, const ElementPlacement& target);

}  // namespace cipherd::planning
