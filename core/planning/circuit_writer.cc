#include "core/planning/circuit_writer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/planning/matrix_transform.h"
#include "core/planning/polynomial_circuit.h"

namespace cipherd::planning::internal {

absl::Status CircuitWriter::Write() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(edges_[i], WriteNode(static_cast<int>(i)));
  }
  return absl::OkStatus();
}

std::string CircuitWriter::OutputEdge(int node) {
  const bool is_input = graph_.nodes[node].kind == NodeKind::kInput;
  if (!is_input && output_edges_.insert(edges_[node]).second) return edges_[node];
  return builder_.AddPlain(edges_[node], 0.0, absl::StrCat(edges_[node], "_copy"));
}

absl::StatusOr<std::string> CircuitWriter::WriteNode(int node_index) {
  const AffineNode& node = graph_.nodes[node_index];
  const auto operand = [&](int i) { return edges_[node.operands[i]]; };
  switch (node.kind) {
    case NodeKind::kInput:
      return node.name;
    case NodeKind::kAffine:
      return WriteAffine(node_index);
    case NodeKind::kMultiply:
      return builder_.Multiply(operand(0), operand(1), node.name);
    case NodeKind::kSquare:
      return builder_.Square(operand(0), node.name);
    case NodeKind::kPolynomial:
      return AppendPolynomial(builder_, operand(0), node.polynomial, node.name);
  }
  return absl::InternalError(absl::StrCat("node '", node.name, "' is of no kind"));
}

std::string CircuitWriter::WriteAffine(int node_index) {
  const AffineNode& node = graph_.nodes[node_index];
  const ElementPlacement& placement = packed_.placements[node_index];
  std::vector<Summand> summands;
  for (size_t i = 0; i < node.form.terms.size(); ++i) {
    summands.push_back(WriteTerm(node_index, static_cast<int>(i)));
  }
  const bool has_constant = std::any_of(node.form.constant.begin(), node.form.constant.end(),
                                        [](double number) { return number != 0; });
  const std::string sum = AddUp(std::move(summands), placement.period,
                                has_constant ? absl::StrCat(node.name, "_sum") : node.name);
  if (!has_constant) return sum;
  std::vector<double> constant(placement.period, 0.0);
  for (size_t i = 0; i < placement.positions.size(); ++i) {
    constant[placement.positions[i]] = node.form.constant[i];
  }
  return builder_.AddPlain(sum, constant, node.name);
}

CircuitWriter::Summand CircuitWriter::WriteTerm(int node_index, int term_index) {
  const AffineNode& node = graph_.nodes[node_index];
  const AffineForm::Term& term = node.form.terms[term_index];
  const ElementPlacement& source = packed_.placements[term.node];
  const ElementPlacement& target = packed_.placements[node_index];
  // Nodes with such a matrix between them are placed alike.
  if (!node.is_masked && term.matrix.IsScalar(1)) return {target.period, false, edges_[term.node]};
  if (!node.is_masked && term.matrix.IsScalar(-1)) return {target.period, true, edges_[term.node]};

  const int64_t input_period = packed_.input_periods[node_index][term_index];
  const std::string input = InputEdge(term.node, input_period);
  const MatrixTransform transform = MakeMatrixTransform(term.matrix, source, input_period, target);
  const bool is_zero_elsewhere = graph_.nodes[term.node].elsewhere.magnitude() == 0;
  const std::string name = absl::StrCat(node.name, "_products");
  if (is_zero_elsewhere) {
    const double factor = transform.CommonFactor(source, input_period);
    const int64_t offset = transform.offsets[0];
    if (factor == 1) {
      return {transform.length, false, builder_.Rotate(input, offset, name)};
    }
    if (factor != 0 && offset == 0) {
      return {transform.length, false, builder_.MultiplyPlain(input, factor, name)};
    }
  }
  if (transform.offsets.size() == 1 && transform.offsets[0] == 0) {
    return {transform.length, false, builder_.MultiplyPlain(input, transform.diagonals, name)};
  }
  return {transform.length, false,
          builder_.LinearTransform(input, transform.diagonals, transform.offsets, name)};
}

std::string CircuitWriter::InputEdge(int node, int64_t period) {
  const int64_t own_period = packed_.placements[node].period;
  if (period >= own_period) return edges_[node];
  // Twice the period first: layers that want different ones share what is on the way.
  std::string& replica = replicas_[{node, period}];
  if (!replica.empty()) return replica;
  const std::string wider = InputEdge(node, 2 * period);
  const std::string name = absl::StrCat(graph_.nodes[node].name, "_period_", period);
  return replica = builder_.Add(
             wider, builder_.Rotate(wider, period, absl::StrCat(name, "_turned")), name);
}

std::string CircuitWriter::AddUp(std::vector<Summand> summands, int64_t period,
                                 const std::string& name) {
  // Those of the largest period first; of one period, those that are added first.
  std::stable_sort(summands.begin(), summands.end(), [](const Summand& a, const Summand& b) {
    return a.period != b.period ? a.period > b.period : a.is_negative < b.is_negative;
  });
  std::string sum;
  int64_t sum_period = summands.front().period;
  const auto narrow_to = [&](int64_t target) {
    for (; sum_period > target; sum_period /= 2) {
      const int64_t step = sum_period / 2;
      const std::string turned = builder_.Rotate(sum, step, absl::StrCat(name, "_turned_", step));
      sum = builder_.Add(sum, turned, step == period ? name : absl::StrCat(name, "_blocks_", step));
    }
  };
  for (const Summand& summand : summands) {
    narrow_to(summand.period);
    if (sum.empty()) {
      sum = summand.is_negative ? builder_.Negate(summand.edge, name) : summand.edge;
    } else if (summand.is_negative) {
      sum = builder_.Subtract(sum, summand.edge, name);
    } else {
      sum = builder_.Add(sum, summand.edge, name);
    }
  }
  narrow_to(period);
  return sum;
}

}  // namespace cipherd::planning::internal
