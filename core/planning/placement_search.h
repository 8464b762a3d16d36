// Places the nodes of a graph in positions, so that its matrices cost little.
//
//   CIPHERD_ASSIGN_OR_RETURN(PackedGraph packed, PackGraph(graph, 2, 32768));
//
// Nodes that are combined position by position are placed alike: operands and results of what is
// not linear, and of matrices with nothing off their diagonal. Inputs stand at the first positions;
// outputs at uniform distances. Everything else is chosen, layer by layer: each choice counts what
// the layer costs and what the cheapest next layer would cost behind it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/planning/affine_graph.h"
#include "core/planning/element_placement.h"

namespace cipherd::planning {

struct PackedGraph {
  int64_t position_count = 0;
  // By node.
  std::vector<ElementPlacement> placements;
  // By node and term of its form: the period that the term's node is brought to before (Packing).
  // Its own for a node that is placed alike.
  std::vector<std::vector<int64_t>> input_periods;
  // In baby steps (packing_cost.h).
  double cost = 0;
};

// With the position count of the least cost an item, between `least` (a power of two, at least 2)
// and `most`: where there is room, twice or four times as many as needed can be cheaper.
// InvalidArgument where a node has more elements than `most`.
absl::StatusOr<PackedGraph> PackGraph(const AffineGraph& graph, int64_t least, int64_t most);

}  // namespace cipherd::planning
