#include "client/load/load_run.h"

#include <atomic>

#include "tests/client/load/load_fixture.h"

namespace cipherd::client {
namespace {

class LoadRunTest : public LoadTest {
 protected:
  void SetUp() override {
    Prepare();
    options_.measurement_interval = absl::Milliseconds(20);
    // Any three intervals agree.
    options_.stability_percentage = 1e6;
  }

  LoadOptions options_;
};

TEST_F(LoadRunTest, EveryLevelIsMeasuredUntilItIsStable) {
  options_.levels = {.start = 1, .end = 5, .step = 2};
  int progress_count = 0;
  ASSERT_OK_AND_ASSIGN(
      const LoadReport report,
      RunLoad(*workload_, options_,
              {.on_progress = [&](double, int, const LoadStatistics*) { ++progress_count; }}));
  ASSERT_EQ(report.levels.size(), 3u);
  EXPECT_GE(progress_count, 9);
  EXPECT_EQ(report.levels[1].level, 3);
  for (const LevelReport& level : report.levels) {
    EXPECT_TRUE(level.is_stable);
    EXPECT_EQ(level.trial_count, 3);
    EXPECT_GT(level.statistics.succeeded, 0u);
    EXPECT_GE(level.statistics.duration, absl::Milliseconds(60));
    EXPECT_GE(level.ended_in_all, level.statistics.ended());
  }
  EXPECT_EQ(report.wrong_count(), 0u);
  EXPECT_TRUE(report.was_verified);
}

TEST_F(LoadRunTest, UnstableLevelsAreGivenUpAndSaidToBe) {
  options_.stability_percentage = 1e-9;
  options_.max_trials = 4;
  ASSERT_OK_AND_ASSIGN(const LoadReport report, RunLoad(*workload_, options_, {}));
  EXPECT_FALSE(report.levels[0].is_stable);
  EXPECT_EQ(report.levels[0].trial_count, 4);
  // Of the last three.
  EXPECT_LT(report.levels[0].statistics.ended(), report.levels[0].ended_in_all);
}

TEST_F(LoadRunTest, LevelsAboveTheLatencyThresholdAreLeftOut) {
  options_.levels = {.start = 1, .end = 3};
  options_.latency_threshold = absl::Nanoseconds(1);
  ASSERT_OK_AND_ASSIGN(const LoadReport report, RunLoad(*workload_, options_, {}));
  EXPECT_EQ(report.levels.size(), 1u);
}

TEST_F(LoadRunTest, InterruptionReportsWhatThereIs) {
  options_.measurement_interval = absl::Hours(1);
  options_.levels = {.start = 1, .end = 3};
  int looks = 0;
  ASSERT_OK_AND_ASSIGN(
      const LoadReport report,
      RunLoad(*workload_, options_, {.is_interrupted = [&] { return ++looks > 2; }}));
  EXPECT_TRUE(report.was_interrupted);
  ASSERT_EQ(report.levels.size(), 1u);
  EXPECT_GT(report.levels[0].statistics.succeeded, 0u);
}

TEST_F(LoadRunTest, WrongResultsOfEveryIntervalCount) {
  std::atomic<int> count{0};
  service_.change_evaluation = [&](v1::EvaluateResponse& response) {
    if (++count == 3) (*response.mutable_payload())[0] ^= 1;
  };
  options_.max_trials = 8;
  options_.stability_percentage = 1e-9;
  ASSERT_OK_AND_ASSIGN(const LoadReport report, RunLoad(*workload_, options_, {}));
  EXPECT_EQ(report.wrong_count(), 1u);
}

}  // namespace
}  // namespace cipherd::client
