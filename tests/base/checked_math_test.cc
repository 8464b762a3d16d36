#include "core/base/checked_math.h"

#include <array>
#include <cstdint>

#include "gtest/gtest.h"

namespace cipherd::base {
namespace {

TEST(CheckedMath, ProductsAndSumsStopAtSixtyFourBits) {
  EXPECT_EQ(CheckedMultiply(uint64_t{1} << 32, uint64_t{1} << 31), uint64_t{1} << 63);
  EXPECT_EQ(CheckedMultiply(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(CheckedAdd(UINT64_MAX - 1, 1), UINT64_MAX);
  EXPECT_EQ(CheckedAdd(UINT64_MAX, 1), std::nullopt);
}

TEST(CheckedMath, ElementCountRefusesNegativeAndOverflowingDimensions) {
  EXPECT_EQ(CheckedElementCount(std::array<int64_t, 3>{2, 3, 4}), 24);
  EXPECT_EQ(CheckedElementCount({}), 1);
  EXPECT_EQ(CheckedElementCount(std::array<int64_t, 2>{INT64_MAX, 0}), 0);
  EXPECT_EQ(CheckedElementCount(std::array<int64_t, 2>{INT64_MAX, 2}), std::nullopt);
  EXPECT_EQ(CheckedElementCount(std::array<int64_t, 2>{2, -1}), std::nullopt);
  EXPECT_EQ(CheckedElementCount(std::array<int64_t, 3>{0, -1, 5}), std::nullopt);
}

}  // namespace
}  // namespace cipherd::base
