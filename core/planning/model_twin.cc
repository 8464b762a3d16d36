#include "core/planning/model_twin.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/planning/constant_numbers.h"
#include "core/planning/interval.h"
#include "core/planning/model_check.h"
#include "core/planning/tensor_shapes.h"

namespace cipherd::planning {
namespace {

// One operation on numbers of type T: doubles, or intervals. T has +, -, * by T and by double,
// Square and Evaluate.
template <typename T>
class Evaluation {
 public:
  using Numbers = std::vector<T>;
  using Edges = std::map<std::string, Numbers, std::less<>>;

  Evaluation(const ModelOperation& operation, const Model& model, const ModelShapes& shapes,
             const Edges& edges)
      : operation_(operation),
        constants_(model.constants),
        shape_(shapes.find(operation.a)->second),
        result_shape_(shapes.find(operation.name)->second),
        a_(edges.find(operation.a)->second),
        edges_(edges) {}

  Numbers Run() const {
    switch (operation_.kind) {
      case ModelKind::kLinear:
        return Linear();
      case ModelKind::kConv2d:
        return Conv2d();
      case ModelKind::kAveragePool2d:
        return AveragePool2d();
      case ModelKind::kAdd:
        return Both([](const T& a, const T& b) { return a + b; });
      case ModelKind::kSubtract:
        return Both([](const T& a, const T& b) { return a - b; });
      case ModelKind::kMultiply:
        // An edge times itself is never negative, which intervals would not know.
        if (operation_.a == operation_.b) return Each([](const T& a) { return Square(a); });
        return Both([](const T& a, const T& b) { return a * b; });
      case ModelKind::kNegate:
        return Each([](const T& a) { return a * -1.0; });
      case ModelKind::kSquare:
        return Each([](const T& a) { return Square(a); });
      case ModelKind::kAddConstant:
        return WithConstant([](const T& a, double c) { return a + T(c); });
      case ModelKind::kMultiplyConstant:
        return WithConstant([](const T& a, double c) { return a * c; });
      case ModelKind::kPolynomial:
        return Each([this](const T& a) { return Evaluate(operation_.polynomial, a); });
      case ModelKind::kSum:
        return Sum();
      case ModelKind::kReshape:
        return a_;
      case ModelKind::kSelect: {
        Numbers result;
        for (int64_t index : IntegersOf(constants_.find(operation_.indices)->second)) {
          result.push_back(a_[index]);
        }
        return result;
      }
    }
    return {};
  }

 private:
  template <typename Function>
  Numbers Each(Function function) const {
    Numbers result;
    result.reserve(a_.size());
    for (const T& a : a_) result.push_back(function(a));
    return result;
  }

  template <typename Function>
  Numbers Both(Function function) const {
    const Numbers& b = edges_.find(operation_.b)->second;
    Numbers result;
    result.reserve(a_.size());
    for (size_t i = 0; i < a_.size(); ++i) result.push_back(function(a_[i], b[i]));
    return result;
  }

  template <typename Function>
  Numbers WithConstant(Function function) const {
    const value::Tensor& constant = constants_.find(operation_.constant)->second;
    const ConstantNumbers numbers(constant);
    const std::vector<int64_t> elements = *BroadcastElements(constant.shape(), shape_);
    Numbers result;
    result.reserve(a_.size());
    for (size_t i = 0; i < a_.size(); ++i)
      result.push_back(function(a_[i], numbers.span()[elements[i]]));
    return result;
  }

  T Bias(std::span<const double> bias, int64_t i) const { return T(bias.empty() ? 0.0 : bias[i]); }

  Numbers Linear() const {
    const ConstantNumbers weight(constants_, operation_.weight);
    const ConstantNumbers bias(constants_, operation_.bias);
    Numbers result;
    for (int64_t row = 0; row < result_shape_[0]; ++row) {
      T sum = Bias(bias.span(), row);
      const double* weights = weight.span().data() + row * a_.size();
      for (size_t i = 0; i < a_.size(); ++i) sum = sum + a_[i] * weights[i];
      result.push_back(sum);
    }
    return result;
  }

  // Calls visit(tap_y, tap_x, element of the plane) for what the window at (y, x) reads inside the
  // image.
  template <typename Visit>
  void ForEachTap(int64_t kernel_height, int64_t kernel_width, int64_t y, int64_t x,
                  Visit visit) const {
    for (int64_t tap_y = 0; tap_y < kernel_height; ++tap_y) {
      for (int64_t tap_x = 0; tap_x < kernel_width; ++tap_x) {
        const int64_t source_y =
            y * operation_.strides[0] + tap_y * operation_.dilations[0] - operation_.pads[0];
        const int64_t source_x =
            x * operation_.strides[1] + tap_x * operation_.dilations[1] - operation_.pads[1];
        if (source_y < 0 || source_y >= shape_[1] || source_x < 0 || source_x >= shape_[2])
          continue;
        visit(tap_y, tap_x, source_y * shape_[2] + source_x);
      }
    }
  }

  // Calls pixel(channel, y, x) for every number of the result.
  template <typename Pixel>
  Numbers ForEachPixel(Pixel pixel) const {
    Numbers result;
    for (int64_t channel = 0; channel < result_shape_[0]; ++channel) {
      for (int64_t y = 0; y < result_shape_[1]; ++y) {
        for (int64_t x = 0; x < result_shape_[2]; ++x) result.push_back(pixel(channel, y, x));
      }
    }
    return result;
  }

  Numbers Conv2d() const {
    const Shape& kernel = constants_.find(operation_.weight)->second.shape();
    const ConstantNumbers weight(constants_, operation_.weight);
    const ConstantNumbers bias(constants_, operation_.bias);
    const int64_t plane = shape_[1] * shape_[2];
    const int64_t out_channels_of_group = kernel[0] / operation_.groups;
    return ForEachPixel([&](int64_t channel, int64_t y, int64_t x) {
      const int64_t first_channel = channel / out_channels_of_group * kernel[1];
      T sum = Bias(bias.span(), channel);
      for (int64_t i = 0; i < kernel[1]; ++i) {
        const double* taps =
            weight.span().data() + (channel * kernel[1] + i) * kernel[2] * kernel[3];
        ForEachTap(kernel[2], kernel[3], y, x, [&](int64_t tap_y, int64_t tap_x, int64_t element) {
          sum = sum + a_[(first_channel + i) * plane + element] * taps[tap_y * kernel[3] + tap_x];
        });
      }
      return sum;
    });
  }

  Numbers AveragePool2d() const {
    const int64_t plane = shape_[1] * shape_[2];
    return ForEachPixel([&](int64_t channel, int64_t y, int64_t x) {
      T sum(0.0);
      int64_t count = 0;
      ForEachTap(operation_.kernel[0], operation_.kernel[1], y, x,
                 [&](int64_t, int64_t, int64_t element) {
                   sum = sum + a_[channel * plane + element];
                   ++count;
                 });
      if (operation_.count_include_pad) count = operation_.kernel[0] * operation_.kernel[1];
      return sum * (1.0 / static_cast<double>(count));
    });
  }

  Numbers Sum() const {
    const std::vector<int64_t> elements =
        ReducedElements(shape_, *CanonicalAxes(operation_.axes, shape_.size()));
    Numbers result(*ElementCount(result_shape_), T(0.0));
    for (size_t i = 0; i < a_.size(); ++i) result[elements[i]] = result[elements[i]] + a_[i];
    return result;
  }

  const ModelOperation& operation_;
  const programs::Constants& constants_;
  const Shape& shape_;
  const Shape& result_shape_;
  const Numbers& a_;
  const Edges& edges_;
};

// Adds every operation's edge to `edges`, which holds the inputs.
template <typename T>
void EvaluateOperations(const Model& model, const ModelShapes& shapes,
                        typename Evaluation<T>::Edges& edges) {
  for (const ModelOperation& operation : model.operations) {
    edges[operation.name] = Evaluation<T>(operation, model, shapes, edges).Run();
  }
}

// How many items `inputs` have.
absl::StatusOr<size_t> CheckSamples(const Model& model, const ModelShapes& shapes,
                                    const TensorBatch& inputs) {
  size_t item_count = 0;
  for (const ModelInput& input : model.inputs) {
    const auto found = inputs.find(input.name);
    if (found == inputs.end()) {
      return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "': no sample for it"));
    }
    if (&input == &model.inputs.front()) item_count = found->second.size();
    if (found->second.size() != item_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", input.name, "': expected ", item_count, " samples, as of '",
                       model.inputs.front().name, "', got ", found->second.size()));
    }
    const int64_t expected = *ElementCount(shapes.find(input.name)->second);
    for (size_t i = 0; i < item_count; ++i) {
      if (static_cast<int64_t>(found->second[i].size()) == expected) continue;
      return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "', sample ", i,
                                                     ": expected ", expected, " numbers, got ",
                                                     found->second[i].size()));
    }
  }
  return item_count;
}

}  // namespace

absl::StatusOr<TensorBatch> EvaluateModel(const Model& model, const TensorBatch& inputs) {
  CIPHERD_ASSIGN_OR_RETURN(const ModelShapes shapes, CheckModel(model));
  CIPHERD_ASSIGN_OR_RETURN(const size_t item_count, CheckSamples(model, shapes, inputs));
  TensorBatch values;
  for (size_t item = 0; item < item_count; ++item) {
    Evaluation<double>::Edges edges;
    for (const ModelInput& input : model.inputs) {
      edges[input.name] = inputs.find(input.name)->second[item];
    }
    EvaluateOperations<double>(model, shapes, edges);
    for (auto& [name, numbers] : edges) values[name].push_back(std::move(numbers));
  }
  return values;
}

Magnitudes MagnitudesOf(const TensorBatch& values, double margin) {
  Magnitudes magnitudes;
  for (const auto& [name, items] : values) {
    double& largest = magnitudes[name];
    for (const std::vector<double>& numbers : items) {
      for (double number : numbers) largest = std::max(largest, std::abs(number));
    }
    largest *= margin;
  }
  return magnitudes;
}

absl::StatusOr<Magnitudes> MeasureMagnitudes(const Model& model, const TensorBatch& samples,
                                             double margin) {
  CIPHERD_ASSIGN_OR_RETURN(const TensorBatch values, EvaluateModel(model, samples));
  return MagnitudesOf(values, margin);
}

Magnitudes BoundMagnitudes(const Model& model) {
  const ModelShapes shapes = *CheckModel(model);
  Evaluation<Interval>::Edges edges;
  for (const ModelInput& input : model.inputs) {
    edges[input.name].assign(*ElementCount(input.shape), Interval(input.lower, input.upper));
  }
  EvaluateOperations<Interval>(model, shapes, edges);
  Magnitudes magnitudes;
  for (const auto& [name, numbers] : edges) {
    double& largest = magnitudes[name];
    for (const Interval& number : numbers) largest = std::max(largest, number.magnitude());
  }
  return magnitudes;
}

}  // namespace cipherd::planning
