#include "client/load/arrivals.h"

#include <cmath>

#include "gtest/gtest.h"

namespace cipherd::client {
namespace {

TEST(ArrivalsTest, ConstantOnesAreEvenAndKeepTheRateForHours) {
  Arrivals arrivals(300, ArrivalDistribution::kConstant, 1);
  absl::Duration last;
  for (int i = 0; i < 300 * 3600; ++i) last = arrivals.Next();
  // Summed up, the rounding of 1/300 would show.
  EXPECT_EQ(last, absl::Seconds((300 * 3600 - 1) / 300.0));
}

TEST(ArrivalsTest, PoissonOnesHaveTheRateAndTheSpreadOfExponentialGaps) {
  constexpr int kCount = 100000;
  constexpr double kRate = 50;
  Arrivals arrivals(kRate, ArrivalDistribution::kPoisson, 7);
  double sum = 0;
  double sum_of_squares = 0;
  absl::Duration last = arrivals.Next();
  EXPECT_EQ(last, absl::ZeroDuration());
  for (int i = 0; i < kCount; ++i) {
    const absl::Duration next = arrivals.Next();
    ASSERT_GE(next, last);
    const double gap = absl::ToDoubleSeconds(next - last) * kRate;
    sum += gap;
    sum_of_squares += gap * gap;
    last = next;
  }
  // Gaps in units of the mean: mean 1 and variance 1, second moment 2 with variance 20. Five
  // standard deviations of the means over kCount.
  EXPECT_NEAR(sum / kCount, 1, 5 * std::sqrt(1.0 / kCount));
  EXPECT_NEAR(sum_of_squares / kCount, 2, 5 * std::sqrt(20.0 / kCount));
}

TEST(ArrivalsTest, TheSameSeedGivesTheSameTimes) {
  Arrivals a(10, ArrivalDistribution::kPoisson, 3);
  Arrivals b(10, ArrivalDistribution::kPoisson, 3);
  Arrivals c(10, ArrivalDistribution::kPoisson, 4);
  bool differs = false;
  for (int i = 0; i < 10; ++i) {
    const absl::Duration time = a.Next();
    EXPECT_EQ(time, b.Next());
    differs = differs || time != c.Next();
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace cipherd::client
