#include "core/planning/circuit_twin.h"

#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::planning {
namespace {

using Positions = std::vector<double>;

// A constant's numbers, row by row, each repeated with its length as a period.
class PeriodicRows {
 public:
  explicit PeriodicRows(const value::Tensor& tensor)
      : numbers_(tensor.data_as<const double>()), length_(tensor.shape().back()) {}

  // Requires position >= 0. The length is a power of two.
  double At(int64_t row, int64_t position) const {
    return numbers_[row * length_ + (position & (length_ - 1))];
  }

 private:
  const double* numbers_;
  int64_t length_;
};

template <typename Function>
Positions ForEachPosition(size_t position_count, const Function& function) {
  Positions result(position_count);
  for (size_t p = 0; p < position_count; ++p) result[p] = function(p);
  return result;
}

Positions Rotate(const Positions& a, int64_t step) {
  const int64_t count = static_cast<int64_t>(a.size());
  const int64_t shift = step % count;
  return ForEachPosition(a.size(), [&](int64_t p) { return a[(p + shift + count) % count]; });
}

Positions LinearTransform(const CircuitOperation& operation, const programs::Constants& constants,
                          const Positions& a) {
  const PeriodicRows diagonals(constants.find(operation.constant)->second);
  const value::Tensor& offsets = constants.find(operation.offsets)->second;
  const int64_t position_mask = static_cast<int64_t>(a.size()) - 1;
  Positions sum(a.size(), 0.0);
  for (int64_t row = 0; row < offsets.element_count(); ++row) {
    const int64_t offset = offsets.data_as<const int64_t>()[row];
    for (int64_t p = 0; p <= position_mask; ++p) {
      sum[p] += diagonals.At(row, p) * a[(p + offset) & position_mask];
    }
  }
  return sum;
}

// Requires `edges` to hold what `operation` reads.
Positions Evaluate(const CircuitOperation& operation, const programs::Constants& constants,
                   const NamedNumbers& edges) {
  const Positions& a = edges.find(operation.a)->second;
  const auto unary = [&](const auto& function) {
    return ForEachPosition(a.size(), [&](size_t p) { return function(a[p]); });
  };
  const auto binary = [&](const auto& function) {
    const Positions& b = edges.find(operation.b)->second;
    return ForEachPosition(a.size(), [&](size_t p) { return function(a[p], b[p]); });
  };
  const auto plain = [&](const auto& function) {
    const PeriodicRows numbers(constants.find(operation.constant)->second);
    return ForEachPosition(a.size(), [&](size_t p) { return function(a[p], numbers.At(0, p)); });
  };
  switch (operation.kind) {
    case CircuitKind::kAdd:
      return binary(std::plus<>());
    case CircuitKind::kSubtract:
      return binary(std::minus<>());
    case CircuitKind::kMultiply:
      return binary(std::multiplies<>());
    case CircuitKind::kNegate:
      return unary(std::negate<>());
    case CircuitKind::kSquare:
      return unary([](double x) { return x * x; });
    case CircuitKind::kAddPlain:
      return plain(std::plus<>());
    case CircuitKind::kSubtractPlain:
      return plain(std::minus<>());
    case CircuitKind::kMultiplyPlain:
      return plain(std::multiplies<>());
    case CircuitKind::kRotate:
      return Rotate(a, operation.step);
    case CircuitKind::kLinearTransform:
      return LinearTransform(operation, constants, a);
  }
  return {};
}

absl::StatusOr<Positions> FillPositions(const Circuit& circuit, const CircuitInput& input,
                                        const NamedNumbers& inputs) {
  const auto given = inputs.find(input.name);
  const int64_t count = given == inputs.end() ? 0 : static_cast<int64_t>(given->second.size());
  if (count != input.element_count) {
    return absl::InvalidArgumentError(absl::StrCat("circuit '", circuit.name, "', input '",
                                                   input.name, "': expected ", input.element_count,
                                                   " elements, got ", count));
  }
  Positions positions = given->second;
  positions.resize(circuit.position_count, 0.0);
  return positions;
}

}  // namespace

absl::StatusOr<NamedNumbers> EvaluateCircuitEdges(const Circuit& circuit,
                                                  const NamedNumbers& inputs) {
  NamedNumbers edges;
  for (const CircuitInput& input : circuit.inputs) {
    CIPHERD_ASSIGN_OR_RETURN(edges[input.name], FillPositions(circuit, input, inputs));
  }
  for (const auto& [name, numbers] : inputs) {
    if (!edges.contains(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("circuit '", circuit.name, "' has no input '", absl::CHexEscape(name), "'"));
    }
  }
  for (const CircuitOperation& operation : circuit.operations) {
    edges[operation.name] = Evaluate(operation, circuit.constants, edges);
  }
  return edges;
}

absl::StatusOr<NamedNumbers> EvaluateCircuit(const Circuit& circuit, const NamedNumbers& inputs) {
  CIPHERD_ASSIGN_OR_RETURN(const NamedNumbers edges, EvaluateCircuitEdges(circuit, inputs));
  return OutputsOf(circuit, edges);
}

NamedNumbers OutputsOf(const Circuit& circuit, const NamedNumbers& edges) {
  NamedNumbers outputs;
  for (const CircuitOutput& output : circuit.outputs) {
    const Positions& positions = edges.find(output.edge)->second;
    Positions& elements = outputs[output.name];
    for (int64_t j = 0; j < output.element_count; ++j) {
      elements.push_back(positions[output.element_stride * j]);
    }
  }
  return outputs;
}

}  // namespace cipherd::planning
