#include "core/planning/error_estimate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::planning {
namespace {

// Of the discrete Gaussian of fresh errors.
constexpr double kSigma = 3.19;

// Deviations of what one operation adds to a slot, in units of values. The real part of a slot is a
// sum of N coefficients by cosines: sqrt(N / 2) of their deviation.
struct SlotErrors {
  explicit SlotErrors(const ErrorModel& model) {
    const double n = std::ldexp(1.0, model.log_n);
    const double unit = std::sqrt(n / 2) / std::exp2(model.log2_scale);
    fresh = kSigma * unit;
    encoding = unit / std::sqrt(12.0);
    // Uniform in each component, the second times a ternary secret of 2N/3 nonzero coefficients.
    rounding = unit * std::sqrt((1 + 2 * n / 3) / 12);
    // A digit's coefficients, uniform below its product, times the errors of its key, over P.
    const double switching = unit * kSigma * std::sqrt(n * model.digit_count / 12.0) *
                             std::exp2(model.log2_digit_over_p);
    key_switch = std::hypot(switching, rounding);
  }

  double fresh;
  double encoding;
  double rounding;
  double key_switch;
};

// Of a constant, over positions, the largest root of the sum of its rows' squares.
struct ConstantNorms {
  double row_norm = 0;
  int64_t row_count = 1;
};

ConstantNorms NormsOf(const value::Tensor& constant) {
  ConstantNorms norms;
  const int64_t length = constant.shape().back();
  norms.row_count = constant.element_count() / length;
  const double* numbers = constant.data_as<const double>();
  std::vector<double> squares(length, 0);
  for (int64_t row = 0; row < norms.row_count; ++row, numbers += length) {
    for (int64_t i = 0; i < length; ++i) squares[i] += numbers[i] * numbers[i];
  }
  norms.row_norm = std::sqrt(*std::max_element(squares.begin(), squares.end()));
  return norms;
}

class Estimator {
 public:
  Estimator(const Circuit& circuit, const EdgeMagnitudes& magnitudes, const ErrorModel& model)
      : circuit_(circuit), magnitudes_(magnitudes), errors_(model) {}

  absl::StatusOr<double> LargestOfOutputs() {
    for (const CircuitInput& input : circuit_.inputs) error_[input.name] = errors_.fresh;
    for (const CircuitOperation& operation : circuit_.operations) {
      CIPHERD_ASSIGN_OR_RETURN(error_[operation.name], ErrorOf(operation));
    }
    double largest = 0;
    for (const CircuitOutput& output : circuit_.outputs) {
      largest = std::max(largest, error_.find(output.edge)->second);
    }
    return kErrorDeviations * largest;
  }

 private:
  absl::StatusOr<double> Magnitude(const std::string& edge) const {
    const auto found = magnitudes_.find(edge);
    if (found != magnitudes_.end()) return found->second;
    return absl::NotFoundError(absl::StrCat("magnitudes: expected edge '", edge, "', got none"));
  }

  absl::StatusOr<double> ErrorOf(const CircuitOperation& operation) const {
    const double a = error_.find(operation.a)->second;
    switch (operation.kind) {
      case CircuitKind::kAdd:
      case CircuitKind::kSubtract:
        return std::hypot(a, error_.find(operation.b)->second);
      case CircuitKind::kNegate:
        return a;
      case CircuitKind::kAddPlain:
      case CircuitKind::kSubtractPlain:
        return std::hypot(a, errors_.encoding);
      case CircuitKind::kRotate:
        return std::hypot(a, errors_.key_switch);
      // Relinearization adds its errors at the product's scale, where they are nothing.
      case CircuitKind::kSquare: {
        CIPHERD_ASSIGN_OR_RETURN(const double magnitude, Magnitude(operation.a));
        return std::hypot(2 * magnitude * a, errors_.rounding);
      }
      case CircuitKind::kMultiply: {
        CIPHERD_ASSIGN_OR_RETURN(const double magnitude_a, Magnitude(operation.a));
        CIPHERD_ASSIGN_OR_RETURN(const double magnitude_b, Magnitude(operation.b));
        const double b = error_.find(operation.b)->second;
        return std::hypot(magnitude_b * a, magnitude_a * b, errors_.rounding);
      }
      case CircuitKind::kMultiplyPlain:
      case CircuitKind::kLinearTransform: {
        CIPHERD_ASSIGN_OR_RETURN(const double magnitude, Magnitude(operation.a));
        const ConstantNorms norms = NormsOf(circuit_.constants.find(operation.constant)->second);
        const double turned =
            operation.kind == CircuitKind::kLinearTransform ? std::hypot(a, errors_.key_switch) : a;
        return std::hypot(norms.row_norm * turned,
                          magnitude * errors_.encoding * std::sqrt(norms.row_count),
                          errors_.rounding);
      }
    }
    return absl::InternalError("unknown kind of operation");
  }

  const Circuit& circuit_;
  const EdgeMagnitudes& magnitudes_;
  const SlotErrors errors_;
  std::map<std::string, double, std::less<>> error_;
};

}  // namespace

absl::StatusOr<double> EstimateError(const Circuit& circuit, const EdgeMagnitudes& magnitudes,
                                     const ErrorModel& model) {
  return Estimator(circuit, magnitudes, model).LargestOfOutputs();
}

}  // namespace cipherd::planning
