#include "core/planning/circuit.h"

namespace cipherd::planning {

std::string_view ToString(CircuitKind kind) {
  switch (kind) {
    case CircuitKind::kAdd:
      return "add";
    case CircuitKind::kSubtract:
      return "subtract";
    case CircuitKind::kNegate:
      return "negate";
    case CircuitKind::kAddPlain:
      return "add_plain";
    case CircuitKind::kSubtractPlain:
      return "subtract_plain";
    case CircuitKind::kMultiply:
      return "multiply";
    case CircuitKind::kSquare:
      return "square";
    case CircuitKind::kMultiplyPlain:
      return "multiply_plain";
    case CircuitKind::kRotate:
      return "rotate";
    case CircuitKind::kLinearTransform:
      return "linear_transform";
  }
  return "unknown";
}

std::vector<std::string_view> OperandsOf(const CircuitOperation& operation) {
  switch (operation.kind) {
    case CircuitKind::kAdd:
    case CircuitKind::kSubtract:
    case CircuitKind::kMultiply:
      return {operation.a, operation.b};
    default:
      return {operation.a};
  }
}

}  // namespace cipherd::planning
