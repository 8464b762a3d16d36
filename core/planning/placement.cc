#include "core/planning/placement.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/programs/names.h"

namespace cipherd::planning {
namespace {

using programs::Operation;
using programs::OperationKind;

OperationKind KindOf(CircuitKind kind) {
  switch (kind) {
    case CircuitKind::kAdd:
      return OperationKind::kAdd;
    case CircuitKind::kSubtract:
      return OperationKind::kSubtract;
    case CircuitKind::kNegate:
      return OperationKind::kNegate;
    case CircuitKind::kAddPlain:
      return OperationKind::kAddPlain;
    case CircuitKind::kSubtractPlain:
      return OperationKind::kSubtractPlain;
    case CircuitKind::kMultiply:
      return OperationKind::kMultiply;
    case CircuitKind::kSquare:
      return OperationKind::kSquare;
    case CircuitKind::kMultiplyPlain:
      return OperationKind::kMultiplyPlain;
    case CircuitKind::kRotate:
      return OperationKind::kRotate;
    case CircuitKind::kLinearTransform:
      return OperationKind::kLinearTransform;
  }
  return OperationKind::kAdd;
}

bool IsSum(CircuitKind kind) {
  return kind == CircuitKind::kAdd || kind == CircuitKind::kSubtract ||
         kind == CircuitKind::kNegate || kind == CircuitKind::kAddPlain ||
         kind == CircuitKind::kSubtractPlain;
}

// Edges that are read by sums alone: they may stay as products are until the sum is made.
std::set<std::string, std::less<>> EdgesOfSums(const Circuit& circuit) {
  std::set<std::string, std::less<>> others;
  for (const CircuitOutput& output : circuit.outputs) others.insert(output.edge);
  for (const CircuitOperation& operation : circuit.operations) {
    if (IsSum(operation.kind)) continue;
    for (std::string_view operand : OperandsOf(operation)) others.emplace(operand);
  }
  std::set<std::string, std::less<>> sums;
  for (const CircuitOperation& operation : circuit.operations) {
    if (!others.contains(operation.name)) sums.insert(operation.name);
  }
  return sums;
}

class Placer {
 public:
  Placer(const Circuit& circuit, const DepthPlan& depths, const ckks::ContextParameters& context,
         const BabySpans& spans)
      : circuit_(circuit),
        depths_(depths),
        scales_(CanonicalScales(context)),
        spans_(spans),
        item_count_(context.slot_count() / circuit.position_count),
        edges_of_sums_(EdgesOfSums(circuit)) {}

  absl::StatusOr<PlacedCircuit> Place() {
    for (const CircuitInput& input : circuit_.inputs) PlaceInput(input);
    std::set<std::string, std::less<>> output_edges;
    for (const CircuitOutput& output : circuit_.outputs) output_edges.insert(output.edge);
    for (const CircuitOperation& operation : circuit_.operations) {
      PlaceOperation(operation);
      // Here, and not behind all operations.
      if (output_edges.contains(operation.name)) DroppedTo(operation.name, depths_.total_depth);
    }
    for (const CircuitOutput& output : circuit_.outputs) PlaceOutput(output);
    CIPHERD_RETURN_IF_ERROR(PlaceConstants());
    return std::move(placed_);
  }

 private:
  // A value that is made, as products are: not yet relinearized where it has three components, and
  // with the square of the scale of `depth`, at which it is.
  struct Product {
    std::string name;
    int depth;
    int component_count;
  };

  double ProductScale(int depth) const { return scales_[depth] * scales_[depth]; }
  int DepthOf(std::string_view edge) const { return depths_.depth.find(edge)->second; }
  programs::SlotExpansion Expansion() const { return {.repeat = item_count_, .tile = true}; }

  std::string Emit(Operation operation) {
    placed_.operations.push_back(std::move(operation));
    return placed_.operations.back().name;
  }

  // `edge` + `suffix`, or a name like it that no edge of the circuit has, and nothing that was
  // asked for before.
  std::string FreshName(const std::string& edge, const std::string& suffix) {
    std::string name = edge + suffix;
    for (int i = 1; name.size() > programs::kMaxEdgeNameBytes || depths_.depth.contains(name) ||
                    !fresh_names_.insert(name).second;
         ++i) {
      const std::string end = absl::StrCat(suffix, "_", i);
      name = edge.substr(0, programs::kMaxEdgeNameBytes - end.size()) + end;
    }
    return name;
  }

  void PlaceInput(const CircuitInput& input) {
    const int depth = DepthOf(input.name);
    placed_.inputs.push_back({.name = input.name,
                              .depth = depth,
                              .scale = scales_[depth],
                              .layout = {.item_count = item_count_,
                                         .item_stride = 1,
                                         .element_count = input.element_count,
                                         .element_stride = item_count_},
                              .description = input.description});
    canonical_[input.name] = input.name;
  }

  void PlaceOutput(const CircuitOutput& output) {
    placed_.outputs.push_back({.name = output.name,
                               .edge = DroppedTo(output.edge, depths_.total_depth),
                               .layout = {.item_count = item_count_,
                                          .item_stride = 1,
                                          .element_count = output.element_count,
                                          .element_stride = item_count_ * output.element_stride},
                               .description = output.description,
                               .magnitude_bound = output.magnitude_bound});
  }

  void PlaceOperation(const CircuitOperation& operation) {
    switch (operation.kind) {
      case CircuitKind::kAdd:
      case CircuitKind::kSubtract:
        return PlaceSum(operation);
      case CircuitKind::kNegate:
      case CircuitKind::kAddPlain:
      case CircuitKind::kSubtractPlain:
        return PlaceSumWithPlain(operation);
      case CircuitKind::kRotate: {
        const std::string a = AtDepth(operation.a, DepthOf(operation.name));
        canonical_[operation.name] = Emit({.name = operation.name,
                                           .kind = OperationKind::kRotate,
                                           .a = a,
                                           .step = operation.step * item_count_});
        return;
      }
      case CircuitKind::kMultiply:
      case CircuitKind::kSquare:
      case CircuitKind::kMultiplyPlain:
      case CircuitKind::kLinearTransform:
        return PlaceProduct(operation);
    }
  }

  void PlaceProduct(const CircuitOperation& operation) {
    const int depth = DepthOf(operation.name) - 1;
    Operation product = {.kind = KindOf(operation.kind)};
    int component_count = 2;
    if (operation.kind == CircuitKind::kMultiply || operation.kind == CircuitKind::kSquare) {
      component_count = 3;
      product.a = AtDepth(operation.a, depth);
      if (operation.kind == CircuitKind::kMultiply) product.b = AtDepth(operation.b, depth);
    } else {
      product.a = DroppedTo(operation.a, depth);
      product.constant = operation.constant;
      product.expansion = Expansion();
      product.result_scale = ProductScale(depth);
      if (operation.kind == CircuitKind::kLinearTransform) {
        product.offsets = operation.offsets;
        offsets_.insert(operation.offsets);
        const auto span = spans_.find(operation.name);
        if (span != spans_.end()) product.baby_span = span->second * item_count_;
      }
    }
    product.name = FreshName(operation.name, "_unscaled");
    AddProduct(
        operation.name,
        {.name = Emit(std::move(product)), .depth = depth, .component_count = component_count});
  }

  void PlaceSum(const CircuitOperation& operation) {
    std::optional<Product> a = ProductForSum(operation.a, operation);
    std::optional<Product> b = ProductForSum(operation.b, operation);
    const int depth = DepthOf(operation.name);
    // One operand is a product, the other of a lesser depth: multiplied by one it is a product too.
    if (a && !b && DepthOf(operation.b) < depth) b = TimesOne(operation.b, depth - 1);
    if (b && !a && DepthOf(operation.a) < depth) a = TimesOne(operation.a, depth - 1);
    Operation sum = {.kind = KindOf(operation.kind)};
    if (a && b) {
      sum.name = FreshName(operation.name, "_unscaled");
      sum.a = a->name;
      sum.b = b->name;
      AddProduct(operation.name,
                 {.name = Emit(std::move(sum)),
                  .depth = depth - 1,
                  .component_count = std::max(a->component_count, b->component_count)});
      return;
    }
    sum.name = operation.name;
    sum.a = AtDepth(operation.a, depth);
    sum.b = AtDepth(operation.b, depth);
    canonical_[operation.name] = Emit(std::move(sum));
  }

  void PlaceSumWithPlain(const CircuitOperation& operation) {
    Operation sum = {.kind = KindOf(operation.kind)};
    if (operation.kind != CircuitKind::kNegate) {
      sum.constant = operation.constant;
      sum.expansion = Expansion();
    }
    const std::optional<Product> a = ProductForSum(operation.a, operation);
    if (a && edges_of_sums_.contains(operation.name)) {
      sum.name = FreshName(operation.name, "_unscaled");
      sum.a = a->name;
      AddProduct(
          operation.name,
          {.name = Emit(std::move(sum)), .depth = a->depth, .component_count = a->component_count});
      return;
    }
    sum.name = operation.name;
    sum.a = AtDepth(operation.a, DepthOf(operation.name));
    canonical_[operation.name] = Emit(std::move(sum));
  }

  void AddProduct(const std::string& edge, Product product) {
    products_.emplace(edge, std::move(product));
  }

  // `edge` as a product of the depth that `sum` has before it is rescaled, where only sums read it.
  std::optional<Product> ProductForSum(const std::string& edge, const CircuitOperation& sum) const {
    const auto product = products_.find(edge);
    if (product == products_.end() || !edges_of_sums_.contains(edge) ||
        DepthOf(edge) != DepthOf(sum.name)) {
      return std::nullopt;
    }
    return product->second;
  }

  // The relinearized and rescaled value at its own depth.
  std::string Canonical(const std::string& edge) {
    const auto found = canonical_.find(edge);
    if (found != canonical_.end()) return found->second;
    const Product& product = products_.find(edge)->second;
    std::string name = product.name;
    if (product.component_count == 3) {
      name = Emit({.name = FreshName(edge, "_relinearized"),
                   .kind = OperationKind::kRelinearize,
                   .a = name});
    }
    return canonical_[edge] = Emit({.name = edge, .kind = OperationKind::kRescale, .a = name});
  }

  // The value at `depth`, at the scale that it has.
  std::string DroppedTo(const std::string& edge, int depth) {
    const std::string canonical = Canonical(edge);
    if (DepthOf(edge) == depth) return canonical;
    std::string& name = dropped_[{edge, depth}];
    if (name.empty()) {
      name = Emit({.name = FreshName(edge, absl::StrCat("_dropped_", depth)),
                   .kind = OperationKind::kDropToDepth,
                   .a = canonical,
                   .depth = depth});
    }
    return name;
  }

  // The value times one as a product of `depth`.
  Product TimesOne(const std::string& edge, int depth) {
    const std::string a = DroppedTo(edge, depth);
    std::string& name = times_one_[{edge, depth}];
    if (name.empty()) {
      name = Emit({.name = FreshName(edge, absl::StrCat("_lifted_", depth + 1, "_unscaled")),
                   .kind = OperationKind::kMultiplyPlain,
                   .a = a,
                   .constant = One(),
                   .expansion = Expansion(),
                   .result_scale = ProductScale(depth)});
    }
    return {.name = name, .depth = depth, .component_count = 2};
  }

  // The value at `depth`, at its scale.
  std::string AtDepth(const std::string& edge, int depth) {
    if (DepthOf(edge) == depth) return Canonical(edge);
    const Product product = TimesOne(edge, depth - 1);
    std::string& name = lifted_[{edge, depth}];
    if (name.empty()) {
      name = Emit({.name = FreshName(edge, absl::StrCat("_lifted_", depth)),
                   .kind = OperationKind::kRescale,
                   .a = product.name});
    }
    return name;
  }

  // The name of a constant that is 1.
  const std::string& One() {
    if (one_.empty()) {
      one_ = "one";
      while (circuit_.constants.contains(one_)) one_ += "_";
    }
    return one_;
  }

  // Those of the circuit, offsets in slots, and the one.
  absl::Status PlaceConstants() {
    placed_.constants = circuit_.constants;
    for (const std::string& name : offsets_) {
      value::Tensor& offsets = placed_.constants.find(name)->second;
      CIPHERD_ASSIGN_OR_RETURN(value::Tensor in_slots,
                               value::Tensor::AllocateHost(value::DType::kInt64, offsets.shape()));
      for (int64_t i = 0; i < offsets.element_count(); ++i) {
        in_slots.data_as<int64_t>()[i] = offsets.data_as<const int64_t>()[i] * item_count_;
      }
      offsets = std::move(in_slots);
    }
    if (one_.empty()) return absl::OkStatus();
    CIPHERD_ASSIGN_OR_RETURN(value::Tensor one,
                             value::Tensor::AllocateHost(value::DType::kFloat64, {1}));
    *one.data_as<double>() = 1;
    placed_.constants.emplace(one_, std::move(one));
    return absl::OkStatus();
  }

  const Circuit& circuit_;
  const DepthPlan& depths_;
  const std::vector<double> scales_;
  const BabySpans& spans_;
  const int64_t item_count_;
  const std::set<std::string, std::less<>> edges_of_sums_;

  using EdgeAtDepth = std::pair<std::string, int>;
  std::map<std::string, Product, std::less<>> products_;
  std::map<std::string, std::string, std::less<>> canonical_;
  std::map<EdgeAtDepth, std::string> dropped_;
  std::map<EdgeAtDepth, std::string> times_one_;
  std::map<EdgeAtDepth, std::string> lifted_;
  std::set<std::string> fresh_names_;
  std::set<std::string> offsets_;
  std::string one_;
  PlacedCircuit placed_;
};

}  // namespace

std::vector<double> CanonicalScales(const ckks::ContextParameters& context) {
  std::vector<double> scales = {context.default_scale};
  for (int depth = 0; depth < context.max_depth(); ++depth) {
    scales.push_back(scales.back() * scales.back() / context.RescaleDivisor(depth));
  }
  return scales;
}

absl::StatusOr<PlacedCircuit> PlaceCircuit(const Circuit& circuit, const DepthPlan& depths,
                                           const ckks::ContextParameters& context,
                                           const BabySpans& spans) {
  if (context.slot_count() < circuit.position_count) {
    return absl::InvalidArgumentError(absl::StrCat("context: expected at least ",
                                                   circuit.position_count, " slots, got ",
                                                   context.slot_count()));
  }
  if (context.max_depth() < depths.total_depth) {
    return absl::InvalidArgumentError(absl::StrCat("context: expected at least ",
                                                   depths.total_depth, " rescale_groups, got ",
                                                   context.max_depth()));
  }
  return Placer(circuit, depths, context, spans).Place();
}

}  // namespace cipherd::planning
