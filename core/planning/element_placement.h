// Where the elements of an edge stand among the positions of a circuit.
//
// Element e of an edge is at positions[e], and again every `period` positions: all of the circuit's
// positions hold the period's content over and over. What stands beside elements is 0, or what the
// node says (AffineNode::elsewhere).
//
// Images may be spread: a strided convolution leaves its results where it reads (pitches grow by
// the strides), so that all of them take the same few diagonals, and further channels fill the gaps
// that the strides leave (multiplexed: Lee et al., "Low-Complexity Deep Convolutional Neural
// Networks on Fully Homomorphic Encryption Using Multiplexed Parallel Convolutions", ICML 2022).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/planning/model.h"

namespace cipherd::planning {

// Pixel (y, x) of a channel is at y · row_pitch + x · column_pitch from the channel's first.
struct ImageGrid {
  int64_t row_pitch = 1;
  int64_t column_pitch = 1;
  // The row pitch of the image that strides began at.
  int64_t base_row_pitch = 1;
  // Between channels, or groups of channels that share a plane.
  int64_t plane_pitch = 1;
};

struct ElementPlacement {
  // A power of two.
  int64_t period = 1;
  // In [0, period), distinct.
  std::vector<int32_t> positions;
  // Of images whose elements stand on one.
  std::optional<ImageGrid> grid;

  // The distance s where element j is at s · j for all j (1 where there is one element), or 0.
  int64_t Stride() const;
  // The least period, a power of two, in which no two elements stand at one position.
  int64_t LeastPeriod() const;
};

// The least power of two that is at least `count`. Requires 1 ≤ count ≤ 2^62.
int64_t PowerOfTwoFor(int64_t count);

// Element e at position e, in the least period.
ElementPlacement CompactPlacement(const Shape& shape);

// Images of `shape` on the grid of `source`, one step of which is `strides` steps of theirs, each
// in its least period, at most `most`. None where the source has no grid.
std::vector<ElementPlacement> ImagePlacements(const Shape& shape, const ElementPlacement& source,
                                              const std::array<int64_t, 2>& strides, int64_t most);

}  // namespace cipherd::planning
