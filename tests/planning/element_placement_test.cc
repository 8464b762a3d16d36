#include "core/planning/element_placement.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace cipherd::planning {
namespace {

TEST(ElementPlacementTest, StridesAndPeriods) {
  const ElementPlacement compact = CompactPlacement({13});
  EXPECT_EQ(compact.period, 16);
  EXPECT_EQ(compact.Stride(), 1);
  const ElementPlacement strided = {.period = 64, .positions = {0, 6, 12}, .grid = {}};
  EXPECT_EQ(strided.Stride(), 6);
  EXPECT_EQ(strided.LeastPeriod(), 8);
  const ElementPlacement odd = {.period = 64, .positions = {0, 32, 33}, .grid = {}};
  EXPECT_EQ(odd.Stride(), 0);
  EXPECT_EQ(odd.LeastPeriod(), 64);
}

TEST(ElementPlacementTest, ChannelsFillTheGapsOfStrides) {
  const ElementPlacement image = CompactPlacement({1, 28, 28});
  const std::vector<ElementPlacement> spread = ImagePlacements({4, 12, 12}, image, {2, 2}, 1024);
  ASSERT_FALSE(spread.empty());
  // Pixel (y, x) of channel c: (2y + c / 2, 2x + c mod 2).
  const auto at = [&](int c, int y, int x) { return spread[0].positions[(c * 12 + y) * 12 + x]; };
  EXPECT_EQ(at(0, 3, 5), 6 * 28 + 10);
  EXPECT_EQ(at(1, 3, 5), 6 * 28 + 11);
  EXPECT_EQ(at(2, 3, 5), 7 * 28 + 10);
  EXPECT_EQ(at(3, 11, 11), 23 * 28 + 23);
  EXPECT_EQ(spread[0].period, 1024);
  for (const ElementPlacement& placement : spread) {
    std::vector<int32_t> positions = placement.positions;
    std::sort(positions.begin(), positions.end());
    EXPECT_EQ(std::adjacent_find(positions.begin(), positions.end()), positions.end());
    EXPECT_LT(positions.back(), placement.period);
  }
  // Four planes of their own need more room.
  EXPECT_EQ(spread.size(), 1u);
  EXPECT_GT(ImagePlacements({4, 12, 12}, image, {2, 2}, 4096).size(), 1u);
}

}  // namespace
}  // namespace cipherd::planning
