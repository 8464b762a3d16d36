#include "core/planning/model.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace cipherd::planning {

std::string_view ToString(ModelKind kind) {
  switch (kind) {
    case ModelKind::kLinear:
      return "linear";
    case ModelKind::kConv2d:
      return "conv2d";
    case ModelKind::kAveragePool2d:
      return "average_pool2d";
    case ModelKind::kAdd:
      return "add";
    case ModelKind::kSubtract:
      return "subtract";
    case ModelKind::kNegate:
      return "negate";
    case ModelKind::kMultiply:
      return "multiply";
    case ModelKind::kSquare:
      return "square";
    case ModelKind::kAddConstant:
      return "add_constant";
    case ModelKind::kMultiplyConstant:
      return "multiply_constant";
    case ModelKind::kPolynomial:
      return "polynomial";
    case ModelKind::kSum:
      return "sum";
    case ModelKind::kReshape:
      return "reshape";
    case ModelKind::kSelect:
      return "select";
  }
  return "unknown";
}

std::vector<std::string_view> OperandsOf(const ModelOperation& operation) {
  switch (operation.kind) {
    case ModelKind::kAdd:
    case ModelKind::kSubtract:
    case ModelKind::kMultiply:
      return {operation.a, operation.b};
    default:
      return {operation.a};
  }
}

std::string ToString(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace cipherd::planning
