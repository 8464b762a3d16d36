// At which depth each edge of a circuit is computed.
//
//   DepthPlan depths = PlanDepths(circuit);
//   depths.depth.at("h")    // of the rescaled value
//   depths.total_depth      // rescaling groups that a context needs
//
// A product (of ciphertexts or by a constant) consumes a depth, nothing else does. The depth of the
// circuit is the least that this allows; within it every edge is as late as what reads it allows,
// because what is late is small: fewer limbs to compute on, to key switch, and to send. So an input
// has the depth at which it is first needed, and outputs have the last one.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/planning/circuit.h"

namespace cipherd::planning {

// Whether the kind multiplies, so that a rescale follows.
bool IsProduct(CircuitKind kind);

struct DepthPlan {
  // Of inputs and operations, once rescaled: a product is computed at one depth less.
  std::map<std::string, int, std::less<>> depth;
  int total_depth = 0;
};

// `circuit` has passed CheckCircuit.
DepthPlan PlanDepths(const Circuit& circuit);

}  // namespace cipherd::planning
