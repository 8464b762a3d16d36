#include "core/planning/model_rules.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/refusal.h"
#include "core/base/status_macros.h"
#include "core/planning/constant_numbers.h"
#include "core/planning/polynomial_split.h"
#include "core/planning/tensor_shapes.h"

namespace cipherd::planning::internal {
namespace {

using base::Refuse;

// What a rule reads, and what several rules ask.
class Rule {
 public:
  Rule(const ModelOperation& operation, const ModelShapes& shapes,
       const programs::Constants& constants)
      : operation_(operation), shapes_(shapes), constants_(constants), a_(shape(operation.a)) {}

  absl::StatusOr<Shape> Apply() const {
    switch (operation_.kind) {
      case ModelKind::kLinear:
        return Linear();
      case ModelKind::kConv2d:
        return Conv2d();
      case ModelKind::kAveragePool2d:
        return AveragePool2d();
      case ModelKind::kAdd:
      case ModelKind::kSubtract:
      case ModelKind::kMultiply:
        return SameShapes();
      case ModelKind::kNegate:
      case ModelKind::kSquare:
        return a_;
      case ModelKind::kAddConstant:
      case ModelKind::kMultiplyConstant:
        return WithConstant();
      case ModelKind::kPolynomial:
        return OfPolynomial();
      case ModelKind::kSum:
        return Sum();
      case ModelKind::kReshape:
        return Reshape();
      case ModelKind::kSelect:
        return Select();
    }
    return Refuse("kind: expected one that this build has, got number ",
                  static_cast<int>(operation_.kind));
  }

 private:
  const Shape& shape(const std::string& name) const { return shapes_.find(name)->second; }
  std::string NamedA() const {
    return absl::StrCat("'", operation_.a, "' of shape ", ToString(a_));
  }
  int64_t CountA() const { return *ElementCount(a_); }

  absl::StatusOr<const value::Tensor*> Find(const char* field, const std::string& name) const {
    if (name.empty()) return Refuse(field, ": expected the name of a constant, got none");
    const auto found = constants_.find(name);
    if (found == constants_.end()) {
      return Refuse(field, " '", name, "': no constant has that name");
    }
    return &found->second;
  }

  // A float64 or float32 constant of finite numbers.
  absl::StatusOr<const value::Tensor*> FindNumbers(const char* field,
                                                   const std::string& name) const {
    CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* tensor, Find(field, name));
    if (tensor->dtype() != value::DType::kFloat64 && tensor->dtype() != value::DType::kFloat32) {
      return Refuse(field, " '", name, "': expected float64 or float32, got ",
                    std::string(value::ToString(tensor->dtype())));
    }
    const std::vector<double> numbers = NumbersOf(*tensor);
    const auto bad = std::find_if_not(numbers.begin(), numbers.end(),
                                      [](double number) { return std::isfinite(number); });
    if (bad != numbers.end()) {
      return Refuse(field, " '", name, "': expected finite numbers, got ", *bad, " at ",
                    bad - numbers.begin());
    }
    return tensor;
  }

  absl::Status CheckBias(int64_t out_count) const {
    if (operation_.bias.empty()) return absl::OkStatus();
    CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* bias, FindNumbers("bias", operation_.bias));
    if (bias->shape() == Shape{out_count}) return absl::OkStatus();
    return Refuse("bias '", operation_.bias, "': expected shape [", out_count,
                  "], one for each row of the weight, got ", ToString(bias->shape()));
  }

  absl::StatusOr<Shape> Linear() const {
    CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* weight, FindNumbers("weight", operation_.weight));
    const Shape& shape = weight->shape();
    if (shape.size() != 2 || shape[0] < 1 || shape[1] != CountA()) {
      const bool is_transposed = shape.size() == 2 && shape[0] == CountA();
      return Refuse("weight '", operation_.weight, "' has shape ", ToString(shape), ", but ",
                    NamedA(), " has ", CountA(), " numbers, so [out, ", CountA(), "] is expected",
                    is_transposed ? "; it looks transposed" : "");
    }
    CIPHERD_RETURN_IF_ERROR(CheckBias(shape[0]));
    return Shape{shape[0]};
  }

  absl::Status CheckImage() const {
    if (a_.size() == 3) return absl::OkStatus();
    return Refuse("expected an image of shape [channels, height, width], got ", NamedA(),
                  "; a reshape gives it one");
  }

  // The windows of both axes, or what is wrong with them.
  absl::StatusOr<std::pair<SlidingWindow, SlidingWindow>> Windows(int64_t kernel_height,
                                                                  int64_t kernel_width) const {
    const std::array<int64_t, 2> kernel = {kernel_height, kernel_width};
    SlidingWindow windows[2];
    for (int axis = 0; axis < 2; ++axis) {
      windows[axis] = {.size = a_[1 + axis],
                       .kernel = kernel[axis],
                       .stride = operation_.strides[axis],
                       .dilation = operation_.dilations[axis],
                       .pad_before = operation_.pads[axis],
                       .pad_after = operation_.pads[2 + axis]};
      const auto check = [](const char* field, int64_t number, int64_t least) -> absl::Status {
        if (number >= least && number <= kMaxElements) return absl::OkStatus();
        return Refuse(field, ": expected ", least, " to ", kMaxElements, ", got ", number);
      };
      CIPHERD_RETURN_IF_ERROR(check("kernel", windows[axis].kernel, 1));
      CIPHERD_RETURN_IF_ERROR(check("strides", windows[axis].stride, 1));
      CIPHERD_RETURN_IF_ERROR(check("dilations", windows[axis].dilation, 1));
      CIPHERD_RETURN_IF_ERROR(check("pads", windows[axis].pad_before, 0));
      CIPHERD_RETURN_IF_ERROR(check("pads", windows[axis].pad_after, 0));
      if (windows[axis].Count() < 1) {
        const int64_t reach = (kernel[axis] - 1) * windows[axis].dilation + 1;
        return Refuse("the kernel reaches over ", reach, axis == 0 ? " rows" : " columns", ", but ",
                      NamedA(), " has ", windows[axis].size, " and ",
                      windows[axis].pad_before + windows[axis].pad_after,
                      " of padding; pad it or take a smaller kernel");
      }
    }
    return std::pair(windows[0], windows[1]);
  }

  absl::StatusOr<Shape> Conv2d() const {
    CIPHERD_RETURN_IF_ERROR(CheckImage());
    CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* weight, FindNumbers("weight", operation_.weight));
    const Shape& shape = weight->shape();
    const int64_t groups = operation_.groups;
    if (groups < 1 || a_[0] % groups != 0) {
      return Refuse("groups: expected a divisor of the ", a_[0], " channels of '", operation_.a,
                    "', got ", groups);
    }
    if (shape.size() != 4 || shape[0] < 1 || shape[1] != a_[0] / groups) {
      return Refuse("weight '", operation_.weight, "' has shape ", ToString(shape), ", but ",
                    NamedA(), " in ", groups, " groups expects [out, ", a_[0] / groups,
                    ", height, width]");
    }
    if (shape[0] % groups != 0) {
      return Refuse("groups: expected a divisor of the ", shape[0], " output channels of '",
                    operation_.weight, "', got ", groups);
    }
    CIPHERD_RETURN_IF_ERROR(CheckBias(shape[0]));
    CIPHERD_ASSIGN_OR_RETURN(const auto windows, Windows(shape[2], shape[3]));
    return Shape{shape[0], windows.first.Count(), windows.second.Count()};
  }

  absl::StatusOr<Shape> AveragePool2d() const {
    CIPHERD_RETURN_IF_ERROR(CheckImage());
    CIPHERD_ASSIGN_OR_RETURN(const auto windows,
                             Windows(operation_.kernel[0], operation_.kernel[1]));
    // Otherwise a mean could be one of no numbers.
    for (int axis = 0; axis < 2; ++axis) {
      for (const int64_t pad : {operation_.pads[axis], operation_.pads[2 + axis]}) {
        if (pad >= operation_.kernel[axis]) {
          return Refuse("pads: expected less than the kernel's ", operation_.kernel[axis], ", got ",
                        pad);
        }
      }
    }
    return Shape{a_[0], windows.first.Count(), windows.second.Count()};
  }

  absl::StatusOr<Shape> SameShapes() const {
    if (shape(operation_.b) == a_) return a_;
    return Refuse("expected operands of one shape, got ", NamedA(), " and '", operation_.b,
                  "' of shape ", ToString(shape(operation_.b)), "; reshape one of them");
  }

  absl::StatusOr<Shape> WithConstant() const {
    CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* constant,
                             FindNumbers("constant", operation_.constant));
    if (BroadcastElements(constant->shape(), a_).has_value()) return a_;
    return Refuse("constant '", operation_.constant, "' of shape ", ToString(constant->shape()),
                  " does not broadcast to ", NamedA(),
                  ": aligned at the last axis, each of its dimensions must be that of '",
                  operation_.a, "' or 1");
  }

  absl::StatusOr<Shape> OfPolynomial() const {
    const Polynomial& polynomial = operation_.polynomial;
    if (polynomial.coefficients.empty()) {
      return Refuse("coefficients: expected at least one, got none");
    }
    if (polynomial.coefficients.size() > kMaxPolynomialDegree + 1) {
      return Refuse("coefficients: expected at most ", kMaxPolynomialDegree + 1, ", got ",
                    polynomial.coefficients.size(), "; fit the function over a smaller range");
    }
    for (double coefficient : polynomial.coefficients) {
      if (!std::isfinite(coefficient)) {
        return Refuse("coefficients: expected finite numbers, got ", coefficient);
      }
    }
    if (std::isfinite(polynomial.lower) && std::isfinite(polynomial.upper) &&
        polynomial.lower < polynomial.upper) {
      return a_;
    }
    return Refuse("lower, upper: expected a range that the polynomial is meant for, got [",
                  polynomial.lower, ", ", polynomial.upper, "]");
  }

  absl::StatusOr<Shape> Sum() const {
    const auto axes = CanonicalAxes(operation_.axes, a_.size());
    if (!axes.has_value()) {
      return Refuse("axes: expected distinct axes of ", NamedA(), ", got ",
                    ToString(operation_.axes));
    }
    Shape result;
    for (int64_t axis = 0; axis < static_cast<int64_t>(a_.size()); ++axis) {
      if (!std::binary_search(axes->begin(), axes->end(), axis)) {
        result.push_back(a_[axis]);
      } else if (operation_.keep_axes) {
        result.push_back(1);
      }
    }
    return result;
  }

  absl::StatusOr<Shape> Reshape() const {
    Shape result = operation_.shape;
    const auto open = std::find(result.begin(), result.end(), -1);
    if (open != result.end()) {
      *open = 1;
      const std::optional<int64_t> known = ElementCount(result);
      if (known.has_value() && CountA() % *known == 0) *open = CountA() / *known;
    }
    if (ElementCount(result) == CountA()) return result;
    return Refuse("shape ", ToString(operation_.shape), " does not hold the ", CountA(),
                  " numbers of ", NamedA(), "; one number may be -1, for what is left");
  }

  absl::StatusOr<Shape> Select() const {
    CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* indices, Find("indices", operation_.indices));
    if (indices->dtype() != value::DType::kInt64 && indices->dtype() != value::DType::kInt32) {
      return Refuse("indices '", operation_.indices, "': expected int64 or int32, got ",
                    std::string(value::ToString(indices->dtype())));
    }
    if (indices->shape().size() != 1 || indices->element_count() < 1) {
      return Refuse("indices '", operation_.indices, "': expected shape [count], got ",
                    ToString(indices->shape()));
    }
    for (int64_t index : IntegersOf(*indices)) {
      if (index < 0 || index >= CountA()) {
        return Refuse("indices '", operation_.indices, "': expected 0 to ", CountA() - 1,
                      ", since ", NamedA(), " has ", CountA(), " numbers, got ", index);
      }
    }
    return indices->shape();
  }

  const ModelOperation& operation_;
  const ModelShapes& shapes_;
  const programs::Constants& constants_;
  const Shape& a_;
};

}  // namespace

absl::StatusOr<Shape> ApplyShapeRule(const ModelOperation& operation, const ModelShapes& shapes,
                                     const programs::Constants& constants) {
  return Rule(operation, shapes, constants).Apply();
}

}  // namespace cipherd::planning::internal
