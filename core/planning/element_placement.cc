#include "core/planning/element_placement.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/planning/tensor_shapes.h"

namespace cipherd::planning {
namespace {

bool AreDistinct(const std::vector<int32_t>& positions, int64_t period) {
  std::vector<bool> is_taken(period, false);
  for (int32_t position : positions) {
    if (is_taken[position & (period - 1)]) return false;
    is_taken[position & (period - 1)] = true;
  }
  return true;
}

// Channels share a plane in phases_y · phases_x interleaved images.
std::optional<ElementPlacement> OnGrid(const Shape& shape, const ImageGrid& grid, int64_t phases_y,
                                       int64_t phases_x, int64_t most) {
  const int64_t phase_count = phases_y * phases_x;
  ElementPlacement placement;
  placement.grid = grid;
  for (int64_t channel = 0; channel < shape[0]; ++channel) {
    const int64_t phase = channel % phase_count;
    const int64_t first = channel / phase_count * grid.plane_pitch +
                          phase / phases_x * grid.base_row_pitch + phase % phases_x;
    for (int64_t y = 0; y < shape[1]; ++y) {
      for (int64_t x = 0; x < shape[2]; ++x) {
        const int64_t position = first + y * grid.row_pitch + x * grid.column_pitch;
        if (position >= most) return std::nullopt;
        placement.positions.push_back(static_cast<int32_t>(position));
      }
    }
  }
  const auto last = std::max_element(placement.positions.begin(), placement.positions.end());
  placement.period = PowerOfTwoFor(*last + 1);
  if (!AreDistinct(placement.positions, placement.period)) return std::nullopt;
  return placement;
}

}  // namespace

int64_t ElementPlacement::Stride() const {
  const int64_t stride = positions.size() > 1 ? positions[1] - positions[0] : 1;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] != stride * static_cast<int64_t>(i)) return 0;
  }
  return std::max<int64_t>(stride, 0);
}

int64_t ElementPlacement::LeastPeriod() const {
  int64_t least = PowerOfTwoFor(positions.size());
  while (least < period && !AreDistinct(positions, least)) least *= 2;
  return least;
}

int64_t PowerOfTwoFor(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
}

ElementPlacement CompactPlacement(const Shape& shape) {
  ElementPlacement placement;
  placement.positions.resize(*ElementCount(shape));
  std::iota(placement.positions.begin(), placement.positions.end(), 0);
  placement.period = PowerOfTwoFor(placement.positions.size());
  if (shape.size() == 3) {
    placement.grid = {.row_pitch = shape[2],
                      .column_pitch = 1,
                      .base_row_pitch = shape[2],
                      .plane_pitch = shape[1] * shape[2]};
  }
  return placement;
}

std::vector<ElementPlacement> ImagePlacements(const Shape& shape, const ElementPlacement& source,
                                              const std::array<int64_t, 2>& strides, int64_t most) {
  if (!source.grid.has_value() || shape.size() != 3) return {};
  ImageGrid grid = *source.grid;
  grid.row_pitch *= strides[0];
  grid.column_pitch *= strides[1];
  if (grid.row_pitch > most || grid.column_pitch > most) return {};
  const int64_t all_phases_y = grid.row_pitch / grid.base_row_pitch;
  std::vector<ElementPlacement> placements;
  for (const auto& [phases_y, phases_x] :
       {std::pair<int64_t, int64_t>(all_phases_y, grid.column_pitch), {1, 1}}) {
    const int64_t extent = (shape[1] - 1) * grid.row_pitch + (shape[2] - 1) * grid.column_pitch +
                           (phases_y - 1) * grid.base_row_pitch + phases_x;
    for (int64_t plane_pitch : {source.grid->plane_pitch, extent, PowerOfTwoFor(extent)}) {
      if (plane_pitch < extent) continue;
      grid.plane_pitch = plane_pitch;
      std::optional<ElementPlacement> placement = OnGrid(shape, grid, phases_y, phases_x, most);
      if (!placement.has_value()) continue;
      // Pitches mean nothing for one plane.
      const bool is_new = std::none_of(
          placements.begin(), placements.end(),
          [&](const ElementPlacement& other) { return other.positions == placement->positions; });
      if (is_new) placements.push_back(*std::move(placement));
    }
  }
  return placements;
}

}  // namespace cipherd::planning
