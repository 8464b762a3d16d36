#include "core/planning/circuit_depth.h"

#include <algorithm>
#include <string_view>

namespace cipherd::planning {
namespace {

bool IsProduct(CircuitKind kind) {
  switch (kind) {
    case CircuitKind::kMultiply:
    case CircuitKind::kSquare:
    case CircuitKind::kMultiplyPlain:
    case CircuitKind::kLinearTransform:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::map<std::string, int, std::less<>> CircuitDepths(const Circuit& circuit) {
  std::map<std::string, int, std::less<>> depths;
  for (const CircuitInput& input : circuit.inputs) depths[input.name] = 0;
  for (const CircuitOperation& operation : circuit.operations) {
    int depth = 0;
    for (const std::string_view operand : OperandsOf(operation)) {
      depth = std::max(depth, depths.find(operand)->second);
    }
    depths[operation.name] = IsProduct(operation.kind) ? depth + 1 : depth;
  }
  return depths;
}

int CircuitDepth(const Circuit& circuit) {
  int deepest = 0;
  for (const auto& [name, depth] : CircuitDepths(circuit)) deepest = std::max(deepest, depth);
  return deepest;
}

}  // namespace cipherd::planning
