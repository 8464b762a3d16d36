#include "core/programs/constant_rules.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/refusal.h"
#include "core/base/status_macros.h"

namespace cipherd::programs::internal {
namespace {

using base::Refuse;

absl::StatusOr<const value::Tensor*> Find(const std::string& name, const Constants& constants) {
  const auto found = constants.find(name);
  if (found == constants.end()) return Refuse("constant '", name, "' is not in the constants file");
  return &found->second;
}

std::string ShapeText(const value::Tensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.shape(), ", "), "]");
}

template <typename T>
double LargestMagnitude(const value::Tensor& tensor) {
  double largest = 0;
  const T* numbers = tensor.data_as<const T>();
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    const double magnitude = std::abs(static_cast<double>(numbers[i]));
    // Written so that a NaN is kept.
    if (!(magnitude <= largest)) largest = magnitude;
    if (std::isnan(largest)) break;
  }
  return largest;
}

// A float constant of `rank` dimensions whose last one is expanded.
absl::StatusOr<const value::Tensor*> CheckNumbers(const Operation& operation,
                                                  const Inference& inference, size_t rank,
                                                  int depth, double scale) {
  const std::string& name = operation.constant;
  CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* tensor, Find(name, inference.constants));
  if (tensor->dtype() != value::DType::kFloat64 && tensor->dtype() != value::DType::kFloat32) {
    return Refuse("constant '", name, "': expected float64 or float32, got ",
                  std::string(value::ToString(tensor->dtype())));
  }
  if (tensor->shape().size() != rank) {
    return Refuse("constant '", name, "': expected shape ",
                  rank == 1 ? "[length]" : "[count, length]", ", got ", ShapeText(*tensor));
  }
  const absl::StatusOr<int64_t> length = ExpandedLength(tensor->shape().back(), operation.expansion,
                                                        inference.parameters.slot_count());
  if (!length.ok()) {
    return Refuse("constant '", name, "': ", std::string(length.status().message()));
  }
  const double largest = tensor->dtype() == value::DType::kFloat64
                             ? LargestMagnitude<double>(*tensor)
                             : LargestMagnitude<float>(*tensor);
  if (!std::isfinite(largest)) {
    return Refuse("constant '", name, "': expected finite numbers, got ", largest);
  }
  const double log_bound = inference.parameters.log_q(depth) - 2;
  if (largest > 0 && std::log2(largest) + std::log2(scale) > log_bound) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "constant '%s': expected magnitudes up to 2^%.2f at scale %s and depth %d, got %g", name,
        log_bound - std::log2(scale), ScaleText(scale), depth, largest));
  }
  return tensor;
}

}  // namespace

absl::StatusOr<double> MultiplierScale(const Operation& operation,
                                       const ckks::ContextParameters& parameters,
                                       const EdgeState& a) {
  const double scale = operation.scale != 0 ? operation.scale : operation.result_scale / a.scale;
  if (scale == 0) {
    if (a.depth == parameters.max_depth()) {
      return Refuse("no rescale follows at the last depth, ", a.depth,
                    "; state the scale of the constant, or compute at a lower depth");
    }
    return parameters.RescaleDivisor(a.depth);
  }
  if (!std::isfinite(scale) || scale < 1) {
    return Refuse(
        "scale: expected at least 1, or 0 for the primes that the next rescale drops, "
        "got ",
        scale);
  }
  return scale;
}

absl::Status CheckSlotConstant(const Operation& operation, const Inference& inference, int depth,
                               double scale) {
  return CheckNumbers(operation, inference, 1, depth, scale).status();
}

absl::StatusOr<std::vector<int64_t>> CheckDiagonals(const Operation& operation,
                                                    const Inference& inference, int depth,
                                                    double scale) {
  CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* diagonals,
                           CheckNumbers(operation, inference, 2, depth, scale));
  CIPHERD_ASSIGN_OR_RETURN(const value::Tensor* offsets,
                           Find(operation.offsets, inference.constants));
  const int64_t count = diagonals->shape()[0];
  if (offsets->dtype() != value::DType::kInt64 || offsets->shape() != std::vector<int64_t>{count}) {
    return Refuse("constant '", operation.offsets, "': expected int64 [", count,
                  "], one for each row of '", operation.constant, "', got ",
                  std::string(value::ToString(offsets->dtype())), " ", ShapeText(*offsets));
  }
  const int64_t* numbers = offsets->data_as<const int64_t>();
  return std::vector<int64_t>(numbers, numbers + count);
}

}  // namespace cipherd::programs::internal
