#include "core/programs/program_spec.h"

namespace cipherd::programs {

std::string_view ToString(OperationKind kind) {
  switch (kind) {
    case OperationKind::kAdd:
      return "add";
    case OperationKind::kSubtract:
      return "subtract";
    case OperationKind::kNegate:
      return "negate";
    case OperationKind::kAddPlain:
      return "add_plain";
    case OperationKind::kSubtractPlain:
      return "subtract_plain";
    case OperationKind::kMultiply:
      return "multiply";
    case OperationKind::kSquare:
      return "square";
    case OperationKind::kMultiplyPlain:
      return "multiply_plain";
    case OperationKind::kRelinearize:
      return "relinearize";
    case OperationKind::kRescale:
      return "rescale";
    case OperationKind::kDropToDepth:
      return "drop_to_depth";
    case OperationKind::kRotate:
      return "rotate";
    case OperationKind::kConjugate:
      return "conjugate";
    case OperationKind::kLinearTransform:
      return "linear_transform";
  }
  return "unknown";
}

std::vector<std::string_view> OperandsOf(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kAdd:
    case OperationKind::kSubtract:
    case OperationKind::kMultiply:
      return {operation.a, operation.b};
    default:
      return {operation.a};
  }
}

}  // namespace cipherd::programs
