#include "client/planning/schedule_report.h"

#include <memory>
#include <optional>
#include <string>

#include "core/planning/edge_magnitudes.h"
#include "core/planning/plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planning/plan_circuits.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using planning::OperationCosts;
using ::testing::HasSubstr;
using ::testing::Not;

class ScheduleReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const planning::Circuit circuit = planning::ManyDepths();
    ASSERT_OK_AND_ASSIGN(
        const planning::EdgeMagnitudes magnitudes,
        planning::MeasureMagnitudes(circuit, planning::RandomSamples(circuit, 10, 7)));
    ASSERT_OK_AND_ASSIGN(const planning::Plan plan, planning::MakePlan(circuit, magnitudes, {}));
    program_ = plan.program;
  }

  std::shared_ptr<const programs::CheckedProgram> program_;
};

TEST_F(ScheduleReportTest, EveryOperationIsARowAndANode) {
  const std::string table = FormatSchedule(*program_, std::nullopt);
  const std::string graph = ScheduleGraph(*program_, std::nullopt);
  for (const programs::Operation& operation : program_->spec.operations) {
    EXPECT_THAT(table, HasSubstr(operation.name));
    EXPECT_THAT(graph, HasSubstr("\"" + operation.name + "\" [fillcolor="));
    EXPECT_THAT(graph, HasSubstr("\"" + operation.a + "\" -> \"" + operation.name + "\""));
  }
  EXPECT_THAT(table, Not(HasSubstr("µs")));
}

TEST_F(ScheduleReportTest, TheSummaryHasWhatAnOperatorAsksFor) {
  const std::string summary = FormatSummary(*program_, std::nullopt);
  EXPECT_THAT(summary, HasSubstr("2 (1 rotations), "));
  EXPECT_THAT(summary, HasSubstr("input 'late'"));
  EXPECT_THAT(summary, HasSubstr("output 'early'"));
  EXPECT_THAT(summary, HasSubstr(" encoded, or streamed through "));
  EXPECT_THAT(summary, Not(HasSubstr("predicted")));
}

TEST_F(ScheduleReportTest, TheSummarySaysWhatNumbersAProgramIsFor) {
  programs::CheckedProgram program = *program_;
  EXPECT_THAT(FormatSummary(program, std::nullopt), Not(HasSubstr("numbers from")));
  program.spec.inputs[0].lower = -0.5;
  program.spec.inputs[0].upper = 1.5;
  program.spec.outputs[0].magnitude_bound = 6.25;
  const std::string summary = FormatSummary(program, std::nullopt);
  EXPECT_THAT(summary, HasSubstr(", numbers from -0.5 to 1.5\n"));
  EXPECT_THAT(summary, HasSubstr(", magnitudes up to 6.25\n"));
}

TEST_F(ScheduleReportTest, ConstantsThatTwoTilesHoldAreNotSaidToStream) {
  const planning::Circuit circuit = planning::SmallNetwork();
  ASSERT_OK_AND_ASSIGN(
      const planning::EdgeMagnitudes magnitudes,
      planning::MeasureMagnitudes(circuit, planning::RandomSamples(circuit, 10, 7)));
  ASSERT_OK_AND_ASSIGN(const planning::Plan plan, planning::MakePlan(circuit, magnitudes, {}));
  ASSERT_GE(2 * plan.program->largest_constant_bytes(), plan.program->constant_bytes());
  const std::string summary = FormatSummary(*plan.program, std::nullopt);
  EXPECT_THAT(summary, HasSubstr(" encoded"));
  EXPECT_THAT(summary, Not(HasSubstr("streamed")));
}

TEST_F(ScheduleReportTest, CostsAreMeasuredForEveryOperationAndAddUp) {
  ASSERT_OK_AND_ASSIGN(const auto device, testing::OpenTestDevice("cpu"));
  const size_t before = device->device_memory_stats().allocated_bytes;
  ASSERT_OK_AND_ASSIGN(const OperationCosts costs,
                       planning::MeasureOperations(program_, *device, {.repetitions = 3}));
  EXPECT_EQ(device->device_memory_stats().allocated_bytes, before);
  ASSERT_EQ(costs.seconds.size(), program_->spec.operations.size());
  double rotate = 0;
  double sum = 0;
  for (size_t i = 0; i < costs.seconds.size(); ++i) {
    EXPECT_GT(costs.seconds[i], 0) << program_->spec.operations[i].name;
    if (program_->spec.operations[i].kind == programs::OperationKind::kRotate) {
      rotate = costs.seconds[i];
    }
    sum += costs.seconds[i];
  }
  EXPECT_DOUBLE_EQ(sum, costs.total_seconds());
  EXPECT_GT(rotate, 0);
  EXPECT_THAT(FormatSchedule(*program_, costs), HasSubstr("µs"));
  EXPECT_THAT(FormatSummary(*program_, costs), HasSubstr("predicted"));
}

}  // namespace
}  // namespace cipherd::client
