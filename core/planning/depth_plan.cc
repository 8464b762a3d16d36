#include "core/planning/depth_plan.h"

#include <algorithm>
#include <string_view>

#include "core/planning/circuit_depth.h"

namespace cipherd::planning {
bool IsProduct(CircuitKind kind) {
  return kind == CircuitKind::kMultiply || kind == CircuitKind::kSquare ||
         kind == CircuitKind::kMultiplyPlain || kind == CircuitKind::kLinearTransform;
}

DepthPlan PlanDepths(const Circuit& circuit) {
  DepthPlan plan;
  plan.total_depth = CircuitDepth(circuit);
  for (const CircuitInput& input : circuit.inputs) plan.depth[input.name] = plan.total_depth;
  for (const CircuitOperation& operation : circuit.operations) {
    plan.depth[operation.name] = plan.total_depth;
  }
  // Readers come after what they read.
  for (auto operation = circuit.operations.rbegin(); operation != circuit.operations.rend();
       ++operation) {
    const int latest = plan.depth[operation->name] - (IsProduct(operation->kind) ? 1 : 0);
    for (std::string_view operand : OperandsOf(*operation)) {
      int& depth = plan.depth.find(operand)->second;
      depth = std::min(depth, latest);
    }
  }
  return plan;
}

}  // namespace cipherd::planning
