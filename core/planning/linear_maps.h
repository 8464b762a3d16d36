// Linear operations of models as matrices: y = matrix · flatten(a) + constant.
//
//   CIPHERD_ASSIGN_OR_RETURN(LinearMap map, LinearMapOf(operation, shape_of_a, model.constants));
//
// A plain value; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/planning/model.h"
#include "core/planning/sparse_matrix.h"

namespace cipherd::planning {

struct LinearMap {
  SparseMatrix matrix;
  // One number a row.
  std::vector<double> constant;
  // How many rows and columns of the operand's image one step in the result's image is. Nothing
  // where operand and result are not both images.
  std::optional<std::array<int64_t, 2>> strides;
};

// Whether the kind reads one edge, linearly.
bool IsLinearMap(ModelKind kind);

// Of an operation of such a kind that CheckModel accepts. ResourceExhausted for a matrix of more
// than SparseMatrix::kMaxEntries entries.
absl::StatusOr<LinearMap> LinearMapOf(const ModelOperation& operation, const Shape& a,
                                      const programs::Constants& constants);

}  // namespace cipherd::planning
