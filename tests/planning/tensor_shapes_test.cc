#include "core/planning/tensor_shapes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cipherd::planning {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

TEST(TensorShapesTest, CountsWithinTheLimit) {
  EXPECT_THAT(ElementCount({}), Optional(1));
  EXPECT_THAT(ElementCount({2, 3}), Optional(6));
  EXPECT_THAT(ElementCount({256, 256}), Optional(65536));
  EXPECT_THAT(ElementCount({256, 257}), Eq(std::nullopt));
  EXPECT_THAT(ElementCount({int64_t{1} << 62, 4}), Eq(std::nullopt));
  EXPECT_THAT(ElementCount({2, 0}), Eq(std::nullopt));
  EXPECT_THAT(ElementCount({-1, -2}), Eq(std::nullopt));
}

TEST(TensorShapesTest, BroadcastsAsNumPyDoes) {
  EXPECT_THAT(BroadcastElements({2, 1}, {2, 3}), Optional(ElementsAre(0, 0, 0, 1, 1, 1)));
  EXPECT_THAT(BroadcastElements({3}, {2, 3}), Optional(ElementsAre(0, 1, 2, 0, 1, 2)));
  EXPECT_THAT(BroadcastElements({}, {2}), Optional(ElementsAre(0, 0)));
  EXPECT_THAT(BroadcastElements({1, 1}, {2}), Eq(std::nullopt));
  EXPECT_THAT(BroadcastElements({2}, {2, 3}), Eq(std::nullopt));
}

TEST(TensorShapesTest, WindowsSlideAsFarAsTheyFit) {
  EXPECT_EQ((SlidingWindow{.size = 28, .kernel = 5, .stride = 2}).Count(), 12);
  EXPECT_EQ((SlidingWindow{.size = 4, .kernel = 3, .dilation = 2}).Count(), 0);
  const SlidingWindow padded = {.size = 4, .kernel = 3, .dilation = 2, .pad_before = 1};
  EXPECT_EQ(padded.Count(), 1);
  EXPECT_EQ(padded.Source(0, 0), -1);
  EXPECT_EQ(padded.Source(0, 2), 3);
}

TEST(TensorShapesTest, AxesAndWhatFallsOnThem) {
  EXPECT_THAT(CanonicalAxes({}, 2), Optional(ElementsAre(0, 1)));
  EXPECT_THAT(CanonicalAxes({-1, 0}, 3), Optional(ElementsAre(0, 2)));
  EXPECT_THAT(CanonicalAxes({3}, 3), Eq(std::nullopt));
  EXPECT_THAT(CanonicalAxes({-1, 2}, 3), Eq(std::nullopt));
  EXPECT_THAT(ReducedElements({2, 3}, {0}), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(ReducedElements({2, 3}, {0, 1}), ElementsAre(0, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace cipherd::planning
