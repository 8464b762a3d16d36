#include "core/planning/linear_maps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/planning/constant_numbers.h"
#include "core/planning/tensor_shapes.h"

namespace cipherd::planning {
namespace {

constexpr std::array<int64_t, 2> kUnitStrides = {1, 1};

std::vector<double> Zeros(int64_t count) { return std::vector<double>(count, 0.0); }

absl::Status CheckEntries(int64_t rows, int64_t entries_of_row) {
  if (entries_of_row <= SparseMatrix::kMaxEntries / rows) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("expected a matrix of at most ",
                                                   SparseMatrix::kMaxEntries, " entries, got ",
                                                   rows, " rows of ", entries_of_row));
}

absl::StatusOr<LinearMap> DenseMap(const ModelOperation& operation,
                                   const programs::Constants& constants) {
  const value::Tensor& weight = constants.find(operation.weight)->second;
  const int64_t rows = weight.shape()[0], columns = weight.shape()[1];
  if (absl::Status status = CheckEntries(rows, columns); !status.ok()) return status;
  LinearMap map;
  map.matrix.column_count = columns;
  map.matrix.values = NumbersOf(weight);
  map.matrix.columns.reserve(map.matrix.values.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; ++i) map.matrix.columns.push_back(static_cast<int32_t>(i));
    map.matrix.EndRow();
  }
  map.constant = operation.bias.empty() ? Zeros(rows) : NumbersOf(constants, operation.bias);
  return map;
}

// The two windows of an image operation.
std::array<SlidingWindow, 2> WindowsOf(const ModelOperation& operation, const Shape& a,
                                       const std::array<int64_t, 2>& kernel) {
  std::array<SlidingWindow, 2> windows;
  for (int axis = 0; axis < 2; ++axis) {
    windows[axis] = {.size = a[1 + axis],
                     .kernel = kernel[axis],
                     .stride = operation.strides[axis],
                     .dilation = operation.dilations[axis],
                     .pad_before = operation.pads[axis],
                     .pad_after = operation.pads[2 + axis]};
  }
  return windows;
}

// Calls visit(tap, pixel of the plane) for the taps inside the image at window position (y, x).
template <typename Visit>
void ForEachTap(const std::array<SlidingWindow, 2>& windows, int64_t y, int64_t x, Visit visit) {
  for (int64_t i = 0; i < windows[0].kernel; ++i) {
    const int64_t source_y = windows[0].Source(y, i);
    if (source_y < 0 || source_y >= windows[0].size) continue;
    for (int64_t j = 0; j < windows[1].kernel; ++j) {
      const int64_t source_x = windows[1].Source(x, j);
      if (source_x < 0 || source_x >= windows[1].size) continue;
      visit(i * windows[1].kernel + j, source_y * windows[1].size + source_x);
    }
  }
}

absl::StatusOr<LinearMap> ConvolutionMap(const ModelOperation& operation, const Shape& a,
                                         const programs::Constants& constants) {
  const value::Tensor& weight = constants.find(operation.weight)->second;
  const Shape& kernel = weight.shape();
  const std::vector<double> numbers = NumbersOf(weight);
  const std::vector<double> bias = NumbersOf(constants, operation.bias);
  const auto windows = WindowsOf(operation, a, {kernel[2], kernel[3]});
  const int64_t tap_count = kernel[2] * kernel[3];
  const int64_t height = windows[0].Count(), width = windows[1].Count();
  if (absl::Status status = CheckEntries(kernel[0] * height * width, kernel[1] * tap_count);
      !status.ok()) {
    return status;
  }
  LinearMap map;
  map.strides = operation.strides;
  map.matrix.column_count = a[0] * a[1] * a[2];
  for (int64_t channel = 0; channel < kernel[0]; ++channel) {
    const int64_t group = channel / (kernel[0] / operation.groups);
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t i = 0; i < kernel[1]; ++i) {
          const int64_t plane = (group * kernel[1] + i) * a[1] * a[2];
          const int64_t first = (channel * kernel[1] + i) * tap_count;
          ForEachTap(windows, y, x, [&](int64_t tap, int64_t pixel) {
            map.matrix.Append(plane + pixel, numbers[first + tap]);
          });
        }
        map.matrix.EndRow();
        map.constant.push_back(bias.empty() ? 0.0 : bias[channel]);
      }
    }
  }
  return map;
}

LinearMap PoolMap(const ModelOperation& operation, const Shape& a) {
  const auto windows = WindowsOf(operation, a, operation.kernel);
  const double kernel_count = static_cast<double>(operation.kernel[0] * operation.kernel[1]);
  LinearMap map;
  map.strides = operation.strides;
  map.matrix.column_count = a[0] * a[1] * a[2];
  for (int64_t channel = 0; channel < a[0]; ++channel) {
    for (int64_t y = 0; y < windows[0].Count(); ++y) {
      for (int64_t x = 0; x < windows[1].Count(); ++x) {
        double count = kernel_count;
        if (!operation.count_include_pad) {
          count = 0;
          ForEachTap(windows, y, x, [&](int64_t, int64_t) { ++count; });
        }
        ForEachTap(windows, y, x, [&](int64_t, int64_t pixel) {
          map.matrix.Append(channel * a[1] * a[2] + pixel, 1 / count);
        });
        map.matrix.EndRow();
      }
    }
  }
  map.constant = Zeros(map.matrix.row_count);
  return map;
}

LinearMap SumMap(const ModelOperation& operation, const Shape& a) {
  const std::vector<int64_t> target = ReducedElements(a, *CanonicalAxes(operation.axes, a.size()));
  std::vector<std::vector<int64_t>> sums(*std::max_element(target.begin(), target.end()) + 1);
  for (size_t i = 0; i < target.size(); ++i) sums[target[i]].push_back(i);
  LinearMap map;
  map.matrix.column_count = static_cast<int64_t>(target.size());
  for (const std::vector<int64_t>& elements : sums) {
    for (int64_t element : elements) map.matrix.Append(element, 1);
    map.matrix.EndRow();
  }
  map.constant = Zeros(map.matrix.row_count);
  return map;
}

// The constant of an elementwise operation, one number an element.
std::vector<double> Broadcast(const ModelOperation& operation, const Shape& a,
                              const programs::Constants& constants) {
  const value::Tensor& constant = constants.find(operation.constant)->second;
  const std::vector<double> numbers = NumbersOf(constant);
  const std::vector<int64_t> elements = *BroadcastElements(constant.shape(), a);
  std::vector<double> broadcast;
  broadcast.reserve(elements.size());
  for (int64_t element : elements) broadcast.push_back(numbers[element]);
  return broadcast;
}

}  // namespace

bool IsLinearMap(ModelKind kind) {
  switch (kind) {
    case ModelKind::kAdd:
    case ModelKind::kSubtract:
    case ModelKind::kMultiply:
    case ModelKind::kSquare:
    case ModelKind::kPolynomial:
      return false;
    default:
      return true;
  }
}

absl::StatusOr<LinearMap> LinearMapOf(const ModelOperation& operation, const Shape& a,
                                      const programs::Constants& constants) {
  const int64_t count = *ElementCount(a);
  switch (operation.kind) {
    case ModelKind::kLinear:
      return DenseMap(operation, constants);
    case ModelKind::kConv2d:
      return ConvolutionMap(operation, a, constants);
    case ModelKind::kAveragePool2d:
      return PoolMap(operation, a);
    case ModelKind::kNegate:
      return LinearMap{SparseMatrix::Diagonal(std::vector<double>(count, -1.0)), Zeros(count),
                       kUnitStrides};
    case ModelKind::kAddConstant:
      return LinearMap{SparseMatrix::Identity(count), Broadcast(operation, a, constants),
                       kUnitStrides};
    case ModelKind::kMultiplyConstant:
      return LinearMap{SparseMatrix::Diagonal(Broadcast(operation, a, constants)), Zeros(count),
                       kUnitStrides};
    case ModelKind::kSum:
      return SumMap(operation, a);
    case ModelKind::kReshape:
      return LinearMap{SparseMatrix::Identity(count), Zeros(count), std::nullopt};
    case ModelKind::kSelect: {
      const std::vector<int64_t> indices = IntegersOf(constants.find(operation.indices)->second);
      return LinearMap{SparseMatrix::Selection(indices, count), Zeros(indices.size()),
                       std::nullopt};
    }
    default:
      return absl::InternalError(absl::StrCat("operation '", operation.name, "' is not linear"));
  }
}

}  // namespace cipherd::planning
