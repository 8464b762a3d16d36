// Multiplicative depth: how many rescalings an edge is away from the inputs.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/planning/circuit.h"

namespace cipherd::planning {

// By name of an edge: 0 for inputs; for products (multiply, square, multiply_plain and
// linear_transform) one more than the deepest operand's; for all else the deepest operand's.
//
// A product and the sums of products of one depth are rescaled once, when they are read next, so
// that an edge of depth d stands behind d rescalings. Requires a circuit that CheckCircuit accepts.
std::map<std::string, int, std::less<>> CircuitDepths(const Circuit& circuit);

// The depth of the deepest edge.
int CircuitDepth(const Circuit& circuit);

}  // namespace cipherd::planning
