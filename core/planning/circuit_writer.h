// Writes a packed graph as the operations of a circuit. Internal to model_lowering.h.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/planning/affine_graph.h"
#include "core/planning/circuit_builder.h"
#include "core/planning/placement_search.h"

namespace cipherd::planning::internal {

// Appends to a circuit that has the inputs. All three outlive the writer.
class CircuitWriter {
 public:
  CircuitWriter(const AffineGraph& graph, const PackedGraph& packed, CircuitBuilder& builder)
      : graph_(graph), packed_(packed), builder_(builder), edges_(graph.nodes.size()) {}

  // Appends all nodes.
  absl::Status Write();
  // The edge of a node, or a copy: an output is no input and no other output.
  std::string OutputEdge(int node);

 private:
  // What is added up at one period.
  struct Summand {
    int64_t period;
    bool is_negative;
    std::string edge;
  };

  absl::StatusOr<std::string> WriteNode(int node);
  std::string WriteAffine(int node);
  Summand WriteTerm(int node, int term_index);
  // The node's edge, brought to a smaller period by rotations.
  std::string InputEdge(int node, int64_t period);
  // The sum of `summands`, with the blocks of those of a larger period than `period` added up.
  std::string AddUp(std::vector<Summand> summands, int64_t period, const std::string& name);

  const AffineGraph& graph_;
  const PackedGraph& packed_;
  CircuitBuilder& builder_;
  // By node.
  std::vector<std::string> edges_;
  std::set<std::string> output_edges_;
  // By node and period, those of InputEdge.
  std::map<std::pair<int, int64_t>, std::string> replicas_;
};

}  // namespace cipherd::planning::internal
