#include "core/planning/tensor_shapes.h"

#include <algorithm>
#include <numeric>

namespace cipherd::planning {

std::optional<int64_t> ElementCount(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 1 || dim > kMaxElements / count) return std::nullopt;
    count *= dim;
  }
  return count;
}

std::optional<std::vector<int64_t>> BroadcastElements(const std::vector<int64_t>& from,
                                                      const std::vector<int64_t>& to) {
  if (from.size() > to.size()) return std::nullopt;
  // Strides of `from` along the axes of `to`, 0 where it is repeated.
  std::vector<int64_t> strides(to.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t dim = from[from.size() - 1 - i];
    const size_t axis = to.size() - 1 - i;
    if (dim != 1 && dim != to[axis]) return std::nullopt;
    strides[axis] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
  std::vector<int64_t> elements = {0};
  for (size_t axis = 0; axis < to.size(); ++axis) {
    std::vector<int64_t> next;
    next.reserve(elements.size() * to[axis]);
    for (int64_t element : elements) {
      for (int64_t i = 0; i < to[axis]; ++i) next.push_back(element + i * strides[axis]);
    }
    elements = std::move(next);
  }
  return elements;
}

std::optional<std::vector<int64_t>> CanonicalAxes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> canonical = axes;
  if (axes.empty()) {
    canonical.resize(rank);
    std::iota(canonical.begin(), canonical.end(), 0);
    return canonical;
  }
  for (int64_t& axis : canonical) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    if (axis < 0) axis += rank;
  }
  std::sort(canonical.begin(), canonical.end());
  if (std::adjacent_find(canonical.begin(), canonical.end()) != canonical.end()) {
    return std::nullopt;
  }
  return canonical;
}

std::vector<int64_t> ReducedElements(const std::vector<int64_t>& shape,
                                     const std::vector<int64_t>& axes) {
  std::vector<int64_t> kept = shape;
  for (int64_t axis : axes) kept[axis] = 1;
  return *BroadcastElements(kept, shape);
}

}  // namespace cipherd::planning
