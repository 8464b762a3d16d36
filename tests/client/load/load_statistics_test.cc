#include "client/load/load_statistics.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cipherd::client {
namespace {

Sample Success(double seconds, int program = 0) {
  Sample sample;
  sample.outcome = Outcome::kSucceeded;
  sample.program = program;
  sample.latency = absl::Seconds(seconds);
  sample.stage_seconds[0] = static_cast<float>(seconds / 2);
  sample.received_bytes = 10;
  return sample;
}

Sample Failure(absl::StatusCode code, v1::ErrorReason reason) {
  Sample sample;
  sample.outcome = Outcome::kFailed;
  sample.code = code;
  sample.reason = reason;
  sample.latency = absl::Hours(1);
  return sample;
}

TEST(PercentileTest, IsTheNearestRank) {
  const std::vector<double> sorted = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(Percentile(sorted, 50), 5);
  EXPECT_EQ(Percentile(sorted, 51), 6);
  EXPECT_EQ(Percentile(sorted, 90), 9);
  EXPECT_EQ(Percentile(sorted, 99), 10);
  EXPECT_EQ(Percentile(sorted, 100), 10);
  EXPECT_EQ(Percentile(std::vector<double>{7}, 1), 7);
  EXPECT_EQ(Percentile({}, 50), 0);
}

TEST(LoadStatisticsTest, LatencyIsOfSuccessesAndEveryEndIsCountedOnce) {
  std::vector<Sample> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(Success(i / 100.0, i % 2));
  samples.push_back(Failure(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED));
  samples.push_back(Failure(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED));
  samples.push_back(Failure(absl::StatusCode::kUnavailable, v1::ERROR_REASON_UNSPECIFIED));
  samples.push_back({.outcome = Outcome::kCancelled, .lag = 2 * kLateAfter});
  samples.push_back({.outcome = Outcome::kWrong, .latency = absl::Hours(1)});

  const LoadStatistics s = Summarize(samples, absl::Seconds(4), /*percentile=*/90);
  EXPECT_EQ(s.succeeded, 100u);
  EXPECT_EQ(s.throughput, 25);
  EXPECT_EQ(s.received_bytes, 1000u);
  EXPECT_EQ(s.failed(), 3u);
  EXPECT_EQ(s.failures.size(), 2u);
  EXPECT_EQ(s.cancelled, 1u);
  EXPECT_EQ(s.wrong, 1u);
  EXPECT_EQ(s.late, 1u);
  EXPECT_EQ(s.ended(), samples.size());
  EXPECT_EQ(s.latency.p50, 0.5);
  EXPECT_EQ(s.latency.p99, 0.99);
  EXPECT_EQ(s.latency.max, 1);
  EXPECT_EQ(s.watched_latency, 0.9);
  EXPECT_NEAR(s.latency.mean, 0.505, 1e-9);
  EXPECT_NEAR(s.stage_seconds[0], 0.505 / 2, 1e-6);
  EXPECT_EQ(s.latency_by_program.at(0).max, 1);
  EXPECT_EQ(s.latency_by_program.at(1).max, 0.99);
}

TEST(LoadStatisticsTest, NothingIsNotDividedBy) {
  const LoadStatistics s = Summarize({}, absl::Seconds(1), 0);
  EXPECT_EQ(s.throughput, 0);
  EXPECT_EQ(s.watched_latency, 0);
  EXPECT_EQ(s.stage_seconds[0], 0);
}

LoadStatistics Interval(double throughput, double latency) {
  LoadStatistics interval;
  interval.succeeded = 1;
  interval.throughput = throughput;
  interval.watched_latency = latency;
  return interval;
}

TEST(StabilityTest, TheLastThreeIntervalsMustAgreeInBothFigures) {
  const LoadStatistics even = Interval(100, 0.010);
  EXPECT_FALSE(IsStable(std::vector{even, even}, 10));
  EXPECT_TRUE(IsStable(std::vector{even, even, even}, 10));
  EXPECT_TRUE(IsStable(std::vector{Interval(1, 9), even, even, even}, 10));
  // Means 105 and 110: the first is within 10 %, the second is not.
  EXPECT_TRUE(IsStable(std::vector{even, even, Interval(115, 0.010)}, 10));
  EXPECT_FALSE(IsStable(std::vector{even, even, Interval(130, 0.010)}, 10));
  EXPECT_FALSE(IsStable(std::vector{even, even, Interval(100, 0.013)}, 10));
  EXPECT_TRUE(IsStable(std::vector{even, even, Interval(100, 0.013)}, 30));
}

TEST(StabilityTest, IntervalsWithoutSuccessAreNot) {
  LoadStatistics none = Interval(0, 0);
  none.succeeded = 0;
  EXPECT_FALSE(IsStable(std::vector{none, none, none}, 10));
}

}  // namespace
}  // namespace cipherd::client
