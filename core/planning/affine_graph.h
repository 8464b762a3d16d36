// A model as what costs something: nodes that hold ciphertexts, and between them sums of matrices
// times nodes.
//
//   CIPHERD_ASSIGN_OR_RETURN(AffineGraph graph, BuildAffineGraph(model, shapes));
//
// Linear operations make no nodes of their own: convolutions, pools, sums, selections, constants
// and reshapes that follow each other become one matrix, which costs one depth and one linear
// transform. A node stands where the model is not linear, where an output is, where several edges
// read a layer, and where two layers are kept apart.
//
// The normalisation of a polynomial's argument is one more affine map, and so becomes part of the
// layer before where nothing else reads that. A polynomial of degree 2 becomes a square: what is
// added to the argument is free, and its factor becomes part of the layer behind.
//
// A plain value.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/planning/affine_form.h"
#include "core/planning/interval.h"
#include "core/planning/model.h"
#include "core/planning/polynomial.h"

namespace cipherd::planning {

enum class NodeKind : uint8_t { kInput, kAffine, kMultiply, kSquare, kPolynomial };

struct AffineNode {
  // Of the model's edge that it is, or is made for.
  std::string name;
  NodeKind kind;
  // That of an image where the edge is one under any of its shapes.
  Shape shape;
  // kAffine.
  AffineForm form = {};
  // The operands of kMultiply (two), kSquare and kPolynomial (one).
  std::vector<int> operands = {};
  // kPolynomial: in the Chebyshev basis on [-1, 1], or in the power basis.
  Polynomial polynomial = {};
  // What positions that hold no element of this node hold, wherever the node is placed.
  Interval elsewhere = {};
  // kAffine: terms that need no multiplication are multiplied by a mask, so that `elsewhere` is 0.
  bool is_masked = false;

  int64_t element_count() const;
};

struct AffineGraph {
  // Operands come before what reads them; inputs in the model's order come first.
  std::vector<AffineNode> nodes;
  // The nodes of the model's outputs.
  std::vector<int> outputs;
  // Edges without a node whose layer and the one behind each mix elements, and are one matrix.
  std::vector<std::string> merged;

  // Products behind each other, at most.
  int Depth() const;
};

// `shapes` are CheckModel's. Layers behind each other that mix elements are one matrix, unless that
// is surely worse (between two wide layers with a narrow one) or the edge between them is in
// `apart`: that costs a depth, and may have far fewer diagonals (a pool, then a convolution).
// ResourceExhausted for matrices beyond SparseMatrix::kMaxEntries.
absl::StatusOr<AffineGraph> BuildAffineGraph(const Model& model, const ModelShapes& shapes,
                                             const std::set<std::string>& apart);

}  // namespace cipherd::planning
