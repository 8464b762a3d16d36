#include "tests/programs/plain_interpreter.h"

#include <cstdint>
#include <utility>

namespace cipherd::programs {
namespace {

double Number(const value::Tensor& tensor, int64_t index) {
  return tensor.dtype() == value::DType::kFloat32 ? tensor.data_as<float>()[index]
                                                  : tensor.data_as<double>()[index];
}

// What slot `slot` holds of row `row`.
double ExpandedNumber(const Operation& operation, const Constants& constants, int64_t row,
                      int64_t slot) {
  const value::Tensor& tensor = constants.at(operation.constant);
  const int64_t length = tensor.shape().back();
  int64_t position = slot / operation.expansion.repeat;
  if (operation.expansion.tile) position %= length;
  return position < length ? Number(tensor, row * length + position) : 0;
}

template <typename Function>
ComplexSlots ForEachSlot(int64_t slot_count, const Function& function) {
  ComplexSlots slots(slot_count);
  for (int64_t j = 0; j < slot_count; ++j) slots[j] = function(j);
  return slots;
}

ComplexSlots Evaluate(const Operation& operation, const Constants& constants, const ComplexSlots& a,
                      const ComplexSlots& b) {
  const int64_t slot_count = static_cast<int64_t>(a.size());
  const auto constant = [&](int64_t j) { return ExpandedNumber(operation, constants, 0, j); };
  const auto each = [&](const auto& function) { return ForEachSlot(slot_count, function); };
  switch (operation.kind) {
    case OperationKind::kAdd:
      return each([&](int64_t j) { return a[j] + b[j]; });
    case OperationKind::kSubtract:
      return each([&](int64_t j) { return a[j] - b[j]; });
    case OperationKind::kNegate:
      return each([&](int64_t j) { return -a[j]; });
    case OperationKind::kAddPlain:
      return each([&](int64_t j) { return a[j] + constant(j); });
    case OperationKind::kSubtractPlain:
      return each([&](int64_t j) { return a[j] - constant(j); });
    case OperationKind::kMultiply:
      return each([&](int64_t j) { return a[j] * b[j]; });
    case OperationKind::kSquare:
      return each([&](int64_t j) { return a[j] * a[j]; });
    case OperationKind::kMultiplyPlain:
      return each([&](int64_t j) { return a[j] * constant(j); });
    case OperationKind::kRelinearize:
    case OperationKind::kRescale:
    case OperationKind::kDropToDepth:
      return a;
    case OperationKind::kRotate:
      return each([&](int64_t j) {
        const int64_t from = (j + operation.step) % slot_count;
        return a[from < 0 ? from + slot_count : from];
      });
    case OperationKind::kConjugate:
      return each([&](int64_t j) { return std::conj(a[j]); });
    case OperationKind::kLinearTransform: {
      const value::Tensor& offsets = constants.at(operation.offsets);
      return each([&](int64_t j) {
        std::complex<double> sum = 0;
        for (int64_t row = 0; row < offsets.element_count(); ++row) {
          const int64_t offset = offsets.data_as<int64_t>()[row];
          sum += ExpandedNumber(operation, constants, row, j) * a[(j + offset) % slot_count];
        }
        return sum;
      });
    }
  }
  return {};
}

}  // namespace

std::map<std::string, ComplexSlots> EvaluatePlain(
    const ProgramSpec& spec, const Constants& constants,
    const std::map<std::string, ComplexSlots>& inputs) {
  std::map<std::string, ComplexSlots> edges;
  for (const ProgramInput& input : spec.inputs) {
    ComplexSlots slots = inputs.at(input.name);
    slots.resize(spec.context.slot_count());
    edges[input.name] = std::move(slots);
  }
  for (const Operation& operation : spec.operations) {
    const bool has_b = OperandsOf(operation).size() == 2;
    edges[operation.name] = Evaluate(operation, constants, edges.at(operation.a),
                                     has_b ? edges.at(operation.b) : ComplexSlots());
  }
  return edges;
}

}  // namespace cipherd::programs
