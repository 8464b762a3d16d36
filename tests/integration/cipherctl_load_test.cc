// cipherctl load against a daemon of its own process.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "client/files/vector_file.h"
#include "nlohmann/json.hpp"
#include "tests/integration/daemon_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ::testing::HasSubstr;

class CipherctlLoadTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  }

  // Short intervals of which any three agree.
  ProcessResult Load(const std::vector<std::string>& flags) const {
    std::vector<std::string> arguments = {CIPHERCTL_BINARY,
                                          "load",
                                          "--program",
                                          kSmallProgram,
                                          "--server",
                                          address(),
                                          "--allow-insecure-contexts",
                                          "--measurement-interval",
                                          "150",
                                          "--stability-percentage",
                                          "1000000",
                                          "--json",
                                          Path("load.json")};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunProcess(arguments);
  }
  nlohmann::json Report() const {
    return nlohmann::json::parse(std::ifstream(Path("load.json")), nullptr, false);
  }
};

TEST_F(CipherctlLoadTest, ManyClientsOfSeveralTenantsGetRightResults) {
  client::Vectors x(2, std::vector<double>(256));
  for (int j = 0; j < 256; ++j) {
    x[0][j] = j / 256.0;
    x[1][j] = -j / 512.0;
  }
  std::ofstream(Path("x.csv")) << client::ToCsv(x);
  std::ofstream(Path("y.csv")) << client::ToCsv(SquaredAndTurned(x));
  const ProcessResult load =
      Load({"--tenants", "3", "--concurrency-range", "2:66:64", "--input",
            std::string(kSmallProgram) + ":x=" + Path("x.csv"), "--expected",
            std::string(kSmallProgram) + ":y=" + Path("y.csv"), "--cancel-share", "0.05"});
  EXPECT_EQ(load.exit_status, 0) << load.errors << load.output;
  EXPECT_THAT(load.output, HasSubstr("wrong results: 0"));
  const nlohmann::json report = Report();
  ASSERT_EQ(report["levels"].size(), 2u) << report;
  for (const nlohmann::json& level : report["levels"]) {
    EXPECT_GT(level["throughput"], 0.0);
    EXPECT_GT(level["latency_seconds"]["p50"], 0.0);
    EXPECT_GT(level["stage_mean_seconds"]["replay"], 0.0);
    for (const nlohmann::json& failure : level["failures"]) {
      EXPECT_EQ(failure["reason"], "OVERLOADED") << level;
    }
  }
  EXPECT_TRUE(report["verified"]);
  // The keys are given back.
  ASSERT_OK_AND_ASSIGN(const MetricsPage page, Metrics());
  EXPECT_EQ(page.Sum("cipherd_key_sets"), 0);
}

TEST_F(CipherctlLoadTest, OpenLoopHoldsItsRate) {
  const ProcessResult load =
      Load({"--request-rate-range", "40", "--request-distribution", "poisson", "--verify"});
  EXPECT_EQ(load.exit_status, 0) << load.errors << load.output;
  EXPECT_THAT(load.output, HasSubstr("Latency counts from when a request was due"));
  const nlohmann::json level = Report()["levels"][0];
  // About 18 requests are due in 450 ms: a Poisson number, of deviation 4.3. Five deviations.
  EXPECT_GT(level["sent_rate"], 0.0);
  EXPECT_LT(level["sent_rate"], 40 + 5 * 4.3 / 0.45);
  EXPECT_EQ(level["requests"]["wrong_in_all"], 0);
}

TEST_F(CipherctlLoadTest, WrongExpectationsAndRangesAreRefused) {
  std::ofstream(Path("y.csv")) << "1";
  const ProcessResult wrong =
      Load({"--expected", std::string(kSmallProgram) + ":y=" + Path("y.csv")});
  EXPECT_EQ(wrong.exit_status, 1);
  EXPECT_THAT(wrong.errors, HasSubstr("y[0][0]: expected 1 within"));
  const ProcessResult range = Load({"--concurrency-range", "3:1"});
  EXPECT_EQ(range.exit_status, 1);
  EXPECT_THAT(range.errors, HasSubstr("0 < start <= end"));
  EXPECT_FALSE(std::filesystem::exists(Path("load.json")));
  ASSERT_OK_AND_ASSIGN(const MetricsPage page, Metrics());
  EXPECT_EQ(page.Sum("cipherd_key_sets"), 0);
}

}  // namespace
}  // namespace cipherd::testing
