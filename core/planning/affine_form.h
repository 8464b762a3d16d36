// Sums of matrices times nodes of a graph, and a constant: an edge of a model before it has a node
// of its own.
//
//   AffineForm h = NodeForm(/*node=*/0, /*count=*/784);
//   CIPHERD_ASSIGN_OR_RETURN(h, Composed(layer, h));      // layer.matrix · node 0 + layer.constant
//
// Plain values; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/planning/linear_maps.h"
#include "core/planning/sparse_matrix.h"

namespace cipherd::planning {

struct AffineForm {
  struct Term {
    int node;
    SparseMatrix matrix;
  };
  // Of different nodes.
  std::vector<Term> terms;
  // One number a row.
  std::vector<double> constant;
  // How many rows and columns of the node's image one step in this image is (LinearMap).
  std::optional<std::array<int64_t, 2>> strides;

  // Whether every term picks or scales elements: no more work than its nodes.
  bool IsSelection() const;
  // Whether every term takes a multiplication.
  bool IsMultiplied() const;
};

// The node itself.
AffineForm NodeForm(int node, int64_t count);
// The node that `form` is as it stands, or -1.
int NodeOf(const AffineForm& form);

// map.matrix · form + map.constant. Errors of Product.
absl::StatusOr<AffineForm> Composed(const LinearMap& map, const AffineForm& form);
// a + factor · b. Errors of Sum.
absl::StatusOr<AffineForm> Added(const AffineForm& a, const AffineForm& b, double factor);

}  // namespace cipherd::planning
