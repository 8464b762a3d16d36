// Arithmetic of shapes: counts, broadcasting, windows. Nothing of what they hold.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace cipherd::planning {

// Most numbers that an edge may have: those that a ciphertext of the largest ring carries.
inline constexpr int64_t kMaxElements = int64_t{1} << 16;

// Product of the dimensions, 1 for none. Nothing where one is below 1 or the product exceeds
// kMaxElements.
std::optional<int64_t> ElementCount(const std::vector<int64_t>& shape);

// For each element of `to`, in row-major order, the element of `from` that NumPy's rules of
// broadcasting put there. Nothing where they do not broadcast `from` to `to`.
std::optional<std::vector<int64_t>> BroadcastElements(const std::vector<int64_t>& from,
                                                      const std::vector<int64_t>& to);

// A window that slides over one axis, padding included.
struct SlidingWindow {
  int64_t size = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_before = 0;
  int64_t pad_after = 0;

  // How many positions it takes: below 1 where it does not fit. Requires stride ≥ 1.
  int64_t Count() const {
    const int64_t room = size + pad_before + pad_after - ((kernel - 1) * dilation + 1);
    return room < 0 ? 0 : room / stride + 1;
  }
  // Where tap `tap` of position `position` reads; outside [0, size) in the padding.
  int64_t Source(int64_t position, int64_t tap) const {
    return position * stride + tap * dilation - pad_before;
  }
};

// `axes` counted from the front, ascending and distinct; of none, all `rank`. Nothing where one is
// outside [-rank, rank), or is there twice.
std::optional<std::vector<int64_t>> CanonicalAxes(const std::vector<int64_t>& axes, int64_t rank);

// For each element of `shape`, in row-major order, the element that it falls on when `axes` (as
// CanonicalAxes gives them) are summed.
std::vector<int64_t> ReducedElements(const std::vector<int64_t>& shape,
                                     const std::vector<int64_t>& axes);

}  // namespace cipherd::planning
