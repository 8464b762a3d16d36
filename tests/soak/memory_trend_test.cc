#include "tests/soak/memory_trend.h"

#include <unistd.h>

#include <cmath>

#include "gtest/gtest.h"

namespace cipherd::testing {
namespace {

TEST(TrendTest, LineIsFoundUnderNoise) {
  Trend trend;
  for (int i = 0; i < 400; ++i) trend.Add(i, 100 + 0.5 * i + (i % 2 == 0 ? 1 : -1));
  const Trend::Line line = trend.Fit(0);
  // Noise of deviation 1 over xx = 400^3 / 12.
  EXPECT_NEAR(line.deviation, 1, 0.01);
  EXPECT_NEAR(line.slope_error, 1 / std::sqrt(400.0 * 400 * 400 / 12), 1e-5);
  EXPECT_NEAR(line.slope, 0.5, 3 * line.slope_error);
}

TEST(TrendTest, WarmUpIsLeftOut) {
  Trend trend;
  for (int i = 0; i < 100; ++i) trend.Add(i, i < 50 ? i : 50);
  EXPECT_GT(trend.Fit(0).slope, 0.3);
  EXPECT_EQ(trend.Fit(50).slope, 0);
}

TEST(TrendTest, OfThisProcessThereIsMemory) {
  EXPECT_GT(ResidentBytes(getpid()), 1e6);
  EXPECT_EQ(ResidentBytes(-1), 0);
}

}  // namespace
}  // namespace cipherd::testing
