// Evaluates a circuit in the clear, in float64: one item, its position_count positions.
//
//   CIPHERD_ASSIGN_OR_RETURN(const auto outputs, EvaluateCircuit(circuit, {{"x", pixels}}));
//   outputs.at("scores")   // element by element
//
// What an encrypted evaluation is compared with, and how the magnitudes of edges are measured over
// samples: sums are made in the order of the circuit, each operation rounds as float64 does.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/planning/circuit.h"

namespace cipherd::planning {

// Numbers by the name of an input, an edge or an output.
using NamedNumbers = std::map<std::string, std::vector<double>, std::less<>>;

// The position_count positions of every edge, inputs included. Requires a circuit that CheckCircuit
// accepts. InvalidArgument where `inputs` does not give every input, and nothing else, its
// element_count elements.
absl::StatusOr<NamedNumbers> EvaluateCircuitEdges(const Circuit& circuit,
                                                  const NamedNumbers& inputs);

// The elements of every output; otherwise the same.
absl::StatusOr<NamedNumbers> EvaluateCircuit(const Circuit& circuit, const NamedNumbers& inputs);

// What EvaluateCircuit reads off the edges of EvaluateCircuitEdges.
NamedNumbers OutputsOf(const Circuit& circuit, const NamedNumbers& edges);

}  // namespace cipherd::planning
