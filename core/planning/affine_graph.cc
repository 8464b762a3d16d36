#include "core/planning/affine_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/planning/linear_maps.h"
#include "core/planning/packing_cost.h"
#include "core/planning/polynomial_forms.h"
#include "core/planning/tensor_shapes.h"

namespace cipherd::planning {
namespace {

// A matrix that takes more multiplications to make is not made: the layers stay apart.
constexpr int64_t kMaxProductCost = int64_t{1} << 30;

class Builder {
 public:
  Builder(const Model& model, const ModelShapes& shapes, const std::set<std::string>& apart)
      : model_(model), shapes_(shapes), apart_(apart) {}

  absl::StatusOr<AffineGraph> Build() {
    FindEdges();
    for (const ModelInput& input : model_.inputs) {
      Edge& edge = edges_[input.name];
      edge.form = FormOf(
          AddNode({.name = input.name, .kind = NodeKind::kInput, .shape = edge.image_shape}));
    }
    for (const ModelOperation& operation : model_.operations) {
      CIPHERD_RETURN_IF_ERROR(AddOperation(operation));
    }
    for (const ModelOutput& output : model_.outputs) {
      graph_.outputs.push_back(NodeOf(edge(output.edge).form));
    }
    return std::move(graph_);
  }

 private:
  // An edge of the model under all its shapes: reshapes make no edges here.
  struct Edge {
    AffineForm form;
    Shape image_shape;
    int reader_count = 0;
    // Read by what is not linear, or an output.
    bool needs_node = false;
  };

  const std::string& Root(const std::string& name) const {
    const auto found = roots_.find(name);
    return found == roots_.end() ? name : found->second;
  }
  Edge& edge(const std::string& name) { return edges_.find(Root(name))->second; }

  // Before anything is built: which edges there are, and who reads them.
  void FindEdges() {
    for (const ModelInput& input : model_.inputs) edges_[input.name].image_shape = input.shape;
    for (const ModelOperation& operation : model_.operations) {
      const Shape& shape = shapes_.find(operation.name)->second;
      if (operation.kind == ModelKind::kReshape) {
        roots_[operation.name] = Root(operation.a);
        if (shape.size() == 3 && edge(operation.a).image_shape.size() != 3) {
          edge(operation.a).image_shape = shape;
        }
        continue;
      }
      edges_[operation.name].image_shape = shape;
      const bool is_linear = IsLinearMap(operation.kind) || operation.kind == ModelKind::kAdd ||
                             operation.kind == ModelKind::kSubtract;
      for (std::string_view operand : OperandsOf(operation)) {
        Edge& read = edge(std::string(operand));
        ++read.reader_count;
        // The argument of a polynomial is an affine map of it.
        if (!is_linear && operation.kind != ModelKind::kPolynomial) read.needs_node = true;
      }
    }
    for (const ModelOutput& output : model_.outputs) edge(output.edge).needs_node = true;
  }

  int AddNode(AffineNode node) {
    graph_.nodes.push_back(std::move(node));
    graph_.nodes.back().elsewhere = Elsewhere(graph_.nodes.back());
    return static_cast<int>(graph_.nodes.size()) - 1;
  }

  Interval Elsewhere(const AffineNode& node) const {
    const auto operand = [&](int i) { return graph_.nodes[node.operands[i]].elsewhere; };
    switch (node.kind) {
      case NodeKind::kInput:
        return Interval(0);
      case NodeKind::kAffine: {
        // Multiplied terms are 0 there, and so is the constant.
        Interval sum(0);
        for (const AffineForm::Term& term : node.form.terms) {
          if (node.is_masked) break;
          const Interval& there = graph_.nodes[term.node].elsewhere;
          if (term.matrix.IsScalar(1)) sum = sum + there;
          if (term.matrix.IsScalar(-1)) sum = sum - there;
        }
        return sum;
      }
      case NodeKind::kMultiply:
        return operand(0) * operand(1);
      case NodeKind::kSquare:
        return Square(operand(0));
      case NodeKind::kPolynomial: {
        const Interval there = operand(0);
        return there.lower == there.upper ? Interval(Evaluate(node.polynomial, there.lower))
                                          : Evaluate(node.polynomial, there);
      }
    }
    return {};
  }

  AffineForm FormOf(int node) const { return NodeForm(node, graph_.nodes[node].element_count()); }

  // The node of `form`, a new one if need be.
  int MakeNode(const std::string& name, const Shape& shape, AffineForm form) {
    if (const int node = NodeOf(form); node >= 0) return node;
    return AddNode(
        {.name = name, .kind = NodeKind::kAffine, .shape = shape, .form = std::move(form)});
  }

  // Gives the edge a node, if it has none yet.
  int NodeOfEdge(const std::string& name) {
    Edge& read = edge(name);
    const int node = MakeNode(Root(name), read.image_shape, std::move(read.form));
    read.form = FormOf(node);
    return node;
  }

  absl::Status Define(const std::string& name, AffineForm form) {
    Edge& defined = edge(name);
    defined.form = std::move(form);
    if (defined.needs_node) NodeOfEdge(name);
    return absl::OkStatus();
  }

  // Whether `outer` of the edge is one matrix, rather than a matrix of the edge's own node.
  bool IsComposed(const SparseMatrix& outer, const Edge& inner) const {
    if (inner.form.IsSelection()) return true;
    if (inner.reader_count > 1) return false;
    int64_t product_cost = 0;
    for (const auto& term : inner.form.terms) product_cost += ProductCost(outer, term.matrix);
    if (product_cost > kMaxProductCost) return false;
    if (outer.IsSelection()) return true;
    double apart = EstimateCost(outer) + kDepthCost, together = 0;
    for (const auto& term : inner.form.terms) {
      apart += EstimateCost(term.matrix);
      const absl::StatusOr<SparseMatrix> product = Product(outer, term.matrix);
      if (!product.ok()) return false;
      together += EstimateCost(*product);
    }
    return together <= apart;
  }

  // The form of `map` of the edge called `name`.
  absl::StatusOr<AffineForm> Apply(const LinearMap& map, const std::string& name) {
    const Edge& inner = edge(name);
    const bool mix = !inner.form.IsSelection() && !map.matrix.IsSelection();
    const bool is_node = NodeOf(inner.form) >= 0;
    if (!is_node && ((mix && apart_.contains(Root(name))) || !IsComposed(map.matrix, inner))) {
      NodeOfEdge(name);
    } else if (mix) {
      graph_.merged.push_back(Root(name));
    }
    return Composed(map, inner.form);
  }

  absl::Status AddOperation(const ModelOperation& operation) {
    switch (operation.kind) {
      case ModelKind::kReshape:
        return absl::OkStatus();
      case ModelKind::kAdd:
      case ModelKind::kSubtract: {
        const double factor = operation.kind == ModelKind::kAdd ? 1 : -1;
        CIPHERD_ASSIGN_OR_RETURN(
            AffineForm form, Added(OperandOfSum(operation.a), OperandOfSum(operation.b), factor));
        return Define(operation.name, std::move(form));
      }
      case ModelKind::kSquare:
        return AddProduct(operation, NodeKind::kSquare, {NodeOfEdge(operation.a)});
      case ModelKind::kMultiply: {
        const int a = NodeOfEdge(operation.a), b = NodeOfEdge(operation.b);
        if (a == b) return AddProduct(operation, NodeKind::kSquare, {a});
        return AddProduct(operation, NodeKind::kMultiply, {a, b});
      }
      case ModelKind::kPolynomial:
        return AddPolynomial(operation);
      default: {
        CIPHERD_ASSIGN_OR_RETURN(
            const LinearMap map,
            LinearMapOf(operation, shapes_.find(operation.a)->second, model_.constants));
        CIPHERD_ASSIGN_OR_RETURN(AffineForm form, Apply(map, operation.a));
        return Define(operation.name, std::move(form));
      }
    }
  }

  // A layer that others read too is made once.
  const AffineForm& OperandOfSum(const std::string& name) {
    const Edge& read = edge(name);
    if (read.reader_count > 1 && !read.form.IsSelection()) NodeOfEdge(name);
    return read.form;
  }

  absl::Status AddProduct(const ModelOperation& operation, NodeKind kind,
                          std::vector<int> operands) {
    const int node = AddNode({.name = operation.name,
                              .kind = kind,
                              .shape = edge(operation.name).image_shape,
                              .operands = std::move(operands)});
    return Define(operation.name, FormOf(node));
  }

  // factor · x + shift for every element of the edge called `name`.
  LinearMap ScaleAndShift(const std::string& name, double factor, double shift) {
    const size_t count = edge(name).form.constant.size();
    return {SparseMatrix::Diagonal(std::vector<double>(count, factor)),
            std::vector<double>(count, shift), std::array<int64_t, 2>{1, 1}};
  }

  // The same of the edge `a` of `operation`, as a node of its own where it has none.
  absl::StatusOr<int> AddArgument(const ModelOperation& operation, double factor, double shift,
                                  const Interval& allowed) {
    CIPHERD_ASSIGN_OR_RETURN(AffineForm form,
                             Apply(ScaleAndShift(operation.a, factor, shift), operation.a));
    AffineNode node = {.name = absl::StrCat(operation.name, "_argument"),
                       .kind = NodeKind::kAffine,
                       .shape = edge(operation.a).image_shape,
                       .form = std::move(form)};
    node.is_masked = !Elsewhere(node).IsWithin(allowed);
    if (const int same = NodeOf(node.form); same >= 0 && !node.is_masked) return same;
    return AddNode(std::move(node));
  }

  absl::Status AddPolynomial(const ModelOperation& operation) {
    const Polynomial polynomial = Trimmed(operation.polynomial);
    const std::vector<double>& c = polynomial.coefficients;
    if (c.size() <= 2) return AddLine(operation, polynomial);
    if (c.size() == 3) {
      if (const std::optional<CompletedSquare> square = CompleteSquare(polynomial)) {
        return AddCompletedSquare(operation, *square);
      }
    }
    // As part of a layer that only the polynomial reads.
    const Edge& read = edge(operation.a);
    const bool is_scale_free = read.reader_count == 1 && read.form.IsMultiplied();
    NormalisedPolynomial form = Normalise(polynomial, is_scale_free);
    const double factor = TakeLeadingFactor(form.polynomial);
    CIPHERD_ASSIGN_OR_RETURN(const int argument,
                             AddArgument(operation, form.scale, form.shift, form.lawful_argument));
    const int node = AddNode({.name = operation.name,
                              .kind = NodeKind::kPolynomial,
                              .shape = edge(operation.name).image_shape,
                              .operands = {argument},
                              .polynomial = std::move(form.polynomial)});
    AffineForm result = FormOf(node);
    result.terms[0].matrix.ScaleRows(std::vector<double>(result.constant.size(), factor));
    return Define(operation.name, std::move(result));
  }

  // Of degree 0 or 1.
  absl::Status AddLine(const ModelOperation& operation, const Polynomial& polynomial) {
    const NormalisedPolynomial form = Normalise(polynomial, /*is_scale_free=*/false);
    const std::vector<double>& c = polynomial.coefficients;
    const double slope = c.size() == 2 ? c[1] : 0;
    CIPHERD_ASSIGN_OR_RETURN(AffineForm line, Apply(ScaleAndShift(operation.a, slope * form.scale,
                                                                  c[0] + slope * form.shift),
                                                    operation.a));
    return Define(operation.name, std::move(line));
  }

  absl::Status AddCompletedSquare(const ModelOperation& operation, const CompletedSquare& square) {
    const Polynomial& polynomial = operation.polynomial;
    const double reach =
        std::max(std::abs(polynomial.lower), std::abs(polynomial.upper)) + std::abs(square.shift);
    CIPHERD_ASSIGN_OR_RETURN(const int argument,
                             AddArgument(operation, 1, square.shift, Interval(-reach, reach)));
    AffineForm form = FormOf(AddNode({.name = absl::StrCat(operation.name, "_square"),
                                      .kind = NodeKind::kSquare,
                                      .shape = edge(operation.name).image_shape,
                                      .operands = {argument}}));
    const size_t count = form.constant.size();
    form.terms[0].matrix.ScaleRows(std::vector<double>(count, square.factor));
    form.constant.assign(count, square.rest);
    return Define(operation.name, std::move(form));
  }

  const Model& model_;
  const ModelShapes& shapes_;
  const std::set<std::string>& apart_;
  // By name of a reshape, the edge that it reshapes.
  std::map<std::string, std::string, std::less<>> roots_;
  // By name of an edge that is no reshape's.
  std::map<std::string, Edge, std::less<>> edges_;
  AffineGraph graph_;
};

}  // namespace

int64_t AffineNode::element_count() const { return *ElementCount(shape); }

int AffineGraph::Depth() const {
  std::vector<int> depths(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const AffineNode& node = nodes[i];
    int& depth = depths[i];
    for (int operand : node.operands) depth = std::max(depth, depths[operand]);
    for (const AffineForm::Term& term : node.form.terms) {
      const bool is_multiplied =
          node.is_masked || !(term.matrix.IsScalar(1) || term.matrix.IsScalar(-1));
      depth = std::max(depth, depths[term.node] + (is_multiplied ? 1 : 0));
    }
    if (node.kind == NodeKind::kMultiply || node.kind == NodeKind::kSquare) ++depth;
    if (node.kind == NodeKind::kPolynomial) {
      // ceil(log2(degree + 1)), or log2(degree) where the highest power is not multiplied.
      const std::vector<double>& c = node.polynomial.coefficients;
      depth += std::bit_width(std::abs(c.back()) == 1 ? c.size() - 2 : c.size() - 1);
    }
  }
  return *std::max_element(depths.begin(), depths.end());
}

absl::StatusOr<AffineGraph> BuildAffineGraph(const Model& model, const ModelShapes& shapes,
                                             const std::set<std::string>& apart) {
  return Builder(model, shapes, apart).Build();
}

}  // namespace cipherd::planning
