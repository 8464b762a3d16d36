// From a model to a circuit: chooses where numbers stand, and writes layers as linear transforms.
//
//   CIPHERD_ASSIGN_OR_RETURN(Magnitudes magnitudes, MeasureMagnitudes(model, samples, 2));
//   CIPHERD_ASSIGN_OR_RETURN(Circuit circuit, LowerModel(model, {.magnitudes = magnitudes}));
//   circuit.position_count   // slots that an item takes
//
// Linear operations that follow each other become one (affine_graph.h), nodes are placed so that
// few diagonals and rotations are needed (placement_search.h), and matrices become diagonals
// (matrix_transform.h). Outputs have their elements at 0, s, 2s, …; inputs at 0, 1, 2, ….
//
// Positions of no element hold 0 behind a layer and on inputs, and what operations make of that:
// p(0) behind a polynomial p. Nothing divides, and where such a number would leave the range of a
// polynomial behind it, it is masked; so it stays within bounds that are known, and
// CircuitOutput::magnitude_bound counts it.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/planning/circuit.h"
#include "core/planning/model.h"
#include "core/planning/model_twin.h"

namespace cipherd::planning {

struct LoweringOptions {
  // Powers of two: the fewest and the most positions that an item may take.
  int64_t least_position_count = 2;
  int64_t most_position_count = int64_t{1} << 15;
  // What outputs are expected to reach, by the model's edges; empty: BoundMagnitudes(model).
  Magnitudes magnitudes = {};
};

// Errors of CheckModel. InvalidArgument also where an edge has more elements than the most
// positions, or `magnitudes` lacks the edge of an output; ResourceExhausted for layers whose matrix
// is too large to write down. Thread-safe.
absl::StatusOr<Circuit> LowerModel(const Model& model, const LoweringOptions& options);

}  // namespace cipherd::planning
