// Tables, JSON and charts of a report.
#include "client/load/load_report.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "client/load/load_chart.h"
#include "nlohmann/json.hpp"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;

LoadReport Example(LoadMode mode) {
  LoadReport report;
  report.options.mode = mode;
  report.server_version = "1.2.3";
  report.device = "cpu:0 (it's 'quoted')";
  report.programs = {"mlp_1", "other"};
  report.tenant_count = 2;
  report.was_verified = true;
  for (int i = 1; i <= 3; ++i) {
    LevelReport& level = report.levels.emplace_back();
    level.level = 8 * i;
    level.is_stable = i < 3;
    level.ended_in_all = 100;
    LoadStatistics& s = level.statistics;
    s.duration = absl::Seconds(15);
    s.throughput = 40.5 * i;
    s.succeeded = 90;
    s.late = 4;
    s.latency = {90, 0.020, 0.018, 0.030, 0.033, 0.0415, 0.050};
    s.latency_by_program = {{0, {60, 0, 0.010, 0, 0, 0.020, 0}}, {1, {30, 0, 0.1, 0, 0, 0.2, 0}}};
    s.stage_seconds = {0.001, 0.002, 0.004, 0.0005, 0.0015, 0.008, 0.0005, 0.001};
    s.failures = {{{absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_OVERLOADED}, 7}};
  }
  return report;
}

TEST(LoadReportTest, TablesHoldTheFigures) {
  const std::string text = FormatLoadReport(Example(LoadMode::kConcurrency));
  EXPECT_THAT(text, HasSubstr("41.50"));
  EXPECT_THAT(text, HasSubstr("121.5"));
  EXPECT_THAT(text, HasSubstr("RESOURCE_EXHAUSTED  OVERLOADED"));
  EXPECT_THAT(text, HasSubstr("mlp_1"));
  EXPECT_THAT(text, HasSubstr("wrong results: 0"));
  EXPECT_THAT(text, HasSubstr("NO"));
  EXPECT_THAT(text, Not(HasSubstr("was due, not")));
  EXPECT_THAT(FormatLoadReport(Example(LoadMode::kRequestRate)),
              HasSubstr("Latency counts from when a request was due"));
}

TEST(LoadReportTest, JsonHoldsTheFigures) {
  const auto json =
      nlohmann::json::parse(LoadReportToJson(Example(LoadMode::kRequestRate)), nullptr, false);
  EXPECT_EQ(json["schema"], "cipherd.load.v1");
  EXPECT_EQ(json["options"]["latency_from"], "when the request was due");
  ASSERT_EQ(json["levels"].size(), 3u);
  const auto& level = json["levels"][1];
  EXPECT_EQ(level["level"], 16);
  EXPECT_EQ(level["throughput"], 81.0);
  EXPECT_EQ(level["latency_seconds"]["p99"], 0.0415);
  EXPECT_EQ(level["stage_mean_seconds"]["batch_wait"], 0.004);
  EXPECT_EQ(level["stage_mean_seconds"]["device_wait"], 0.0015);
  EXPECT_EQ(level["stage_mean_seconds"]["replay"], 0.008);
  EXPECT_EQ(level["failures"][0]["reason"], "OVERLOADED");
  EXPECT_EQ(level["requests"]["late"], 4);
  EXPECT_EQ(level["latency_seconds_by_program"]["other"]["p50"], 0.1);
}

TEST(LoadReportTest, ProgressNamesLevelIntervalAndFigures) {
  const LoadStatistics s = Example(LoadMode::kConcurrency).levels[0].statistics;
  EXPECT_EQ(FormatLoadProgress(LoadMode::kConcurrency, 8, 2, &s),
            "8 clients  interval 2  40.5 results/s  p50 18.00 ms  p99 41.50 ms  failed 7");
}

TEST(LoadChartTest, FormatGoesByTheExtension) {
  const LoadReport report = Example(LoadMode::kConcurrency);
  EXPECT_THAT(LoadChartScript(report, "a.svg"), ::cipherd::testing::IsOk());
  EXPECT_THAT(*LoadChartScript(report, "a.png"), HasSubstr("pngcairo"));
  EXPECT_THAT(CheckCanDraw("a.pdf"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a.pdf")));
}

TEST(LoadChartTest, WithoutGnuplotTheMessageSaysWhatToInstall) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const absl::Status status = CheckCanDraw("a.svg");
  setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("gnuplot-nox")));
}

TEST(LoadChartTest, IsDrawnWholeWhateverNamesHold) {
  const std::string directory = ::testing::TempDir();
  const std::string svg = directory + "/it's a chart.svg";
  if (absl::IsFailedPrecondition(CheckCanDraw(svg))) GTEST_SKIP() << "no gnuplot";
  ASSERT_OK(DrawLoadChart(Example(LoadMode::kConcurrency), svg));
  std::ifstream file(svg);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("<svg"));
  EXPECT_THAT(text, HasSubstr("</svg>"));
  // As they are, not as markup: "_1" is no subscript.
  EXPECT_THAT(text, HasSubstr("mlp_1"));
  EXPECT_THAT(text, HasSubstr("p99"));
  std::filesystem::remove(svg);

  EXPECT_FALSE(DrawLoadChart(Example(LoadMode::kConcurrency), "/nonexistent/a.png").ok());
}

}  // namespace
}  // namespace cipherd::client
