#include "core/planning/model_lowering.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/planning/affine_graph.h"
#include "core/planning/circuit_builder.h"
#include "core/planning/circuit_writer.h"
#include "core/planning/model_check.h"
#include "core/planning/packing_cost.h"
#include "core/planning/placement_search.h"

namespace cipherd::planning {
namespace {

absl::Status CheckOptions(const LoweringOptions& options) {
  const auto check = [](const char* name, int64_t count) -> absl::Status {
    if (count >= 2 && std::has_single_bit(static_cast<uint64_t>(count))) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected a power of two, at least 2, got ", count));
  };
  CIPHERD_RETURN_IF_ERROR(check("least_position_count", options.least_position_count));
  CIPHERD_RETURN_IF_ERROR(check("most_position_count", options.most_position_count));
  if (options.least_position_count <= options.most_position_count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("least_position_count: expected at most most_position_count, ",
                   options.most_position_count, ", got ", options.least_position_count));
}

void AddInputs(const Model& model, const AffineGraph& graph, CircuitBuilder& builder) {
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const ModelInput& input = model.inputs[i];
    builder.Input({.name = input.name,
                   .element_count = graph.nodes[i].element_count(),
                   .magnitude_bound = std::max(std::abs(input.lower), std::abs(input.upper)),
                   .description = input.description});
  }
}

struct PlacedModel {
  AffineGraph graph;
  PackedGraph packed;

  // Of an item; so that more depth is worse than it is for the matrices alone.
  double cost() const {
    return (packed.cost + kDepthCost * graph.Depth()) * static_cast<double>(packed.position_count);
  }
};

absl::StatusOr<PlacedModel> PlaceModel(const Model& model, const ModelShapes& shapes,
                                       const LoweringOptions& options,
                                       const std::set<std::string>& apart) {
  PlacedModel placed;
  CIPHERD_ASSIGN_OR_RETURN(placed.graph, BuildAffineGraph(model, shapes, apart));
  CIPHERD_ASSIGN_OR_RETURN(placed.packed, PackGraph(placed.graph, options.least_position_count,
                                                    options.most_position_count));
  return placed;
}

// Layers behind each other become one matrix, but where it is better that they do not.
absl::StatusOr<PlacedModel> PlaceModel(const Model& model, const ModelShapes& shapes,
                                       const LoweringOptions& options) {
  std::set<std::string> apart;
  CIPHERD_ASSIGN_OR_RETURN(PlacedModel best, PlaceModel(model, shapes, options, apart));
  const std::vector<std::string> merged = best.graph.merged;
  for (const std::string& edge : merged) {
    apart.insert(edge);
    absl::StatusOr<PlacedModel> placed = PlaceModel(model, shapes, options, apart);
    // An edge in between may be too wide.
    if (placed.ok() && placed->cost() < best.cost()) {
      best = *std::move(placed);
    } else {
      apart.erase(edge);
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<Circuit> LowerModel(const Model& model, const LoweringOptions& options) {
  CIPHERD_RETURN_IF_ERROR(CheckOptions(options));
  CIPHERD_ASSIGN_OR_RETURN(const ModelShapes shapes, CheckModel(model));
  const Magnitudes magnitudes =
      options.magnitudes.empty() ? BoundMagnitudes(model) : options.magnitudes;
  for (const ModelOutput& output : model.outputs) {
    if (magnitudes.contains(output.edge)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("magnitudes: expected one of edge '", output.edge, "', got none"));
  }

  CIPHERD_ASSIGN_OR_RETURN(const PlacedModel placed, PlaceModel(model, shapes, options));
  const AffineGraph& graph = placed.graph;
  const PackedGraph& packed = placed.packed;
  CircuitBuilder builder(model.name, packed.position_count);
  builder.set_version(model.version);
  builder.set_description(model.description);
  AddInputs(model, graph, builder);
  internal::CircuitWriter writer(graph, packed, builder);
  CIPHERD_RETURN_IF_ERROR(writer.Write());
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    const ModelOutput& output = model.outputs[i];
    const int node = graph.outputs[i];
    const ElementPlacement& placement = packed.placements[node];
    const double magnitude =
        std::max(magnitudes.find(output.edge)->second, graph.nodes[node].elsewhere.magnitude());
    builder.Output({.name = output.name,
                    .edge = writer.OutputEdge(node),
                    .element_count = graph.nodes[node].element_count(),
                    .element_stride = placement.Stride(),
                    // Of an output that is 0 whatever comes in.
                    .magnitude_bound = magnitude > 0 ? magnitude : 1,
                    .description = output.description});
  }
  return std::move(builder).Build();
}

}  // namespace cipherd::planning
