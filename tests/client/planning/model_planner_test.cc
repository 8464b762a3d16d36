#include "client/planning/model_planner.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "client/planning/local_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/codec/model_codec.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using planning::Model;
using ::testing::HasSubstr;

// 3 numbers, 2 hidden, one probability.
Model SmallModel() {
  return *codec::ParseModelText(R"(
    name: "small"
    inputs { name: "x" shape: [3] lower: -2 upper: 2 }
    operations { name: "h" linear { a: "x" weight: "w" bias: "b" } }
    operations { name: "p" polynomial { a: "h" coefficients: [0.5, 0.25, 0, -0.02] lower: -4 upper: 4 } }
    operations { name: "y" linear { a: "p" weight: "v" } }
    outputs { name: "score" edge: "y" }
    constants { name: "w" shape: [2, 3] values: [0.5, -0.25, 1, 0.125, 0.75, -0.5] }
    constants { name: "b" values: [0.1, -0.2] }
    constants { name: "v" shape: [1, 2] values: [1, -1] }
  )",
                                "small");
}

double Score(const std::vector<double>& x) {
  const auto p = [](double h) { return 0.5 + 0.25 * h - 0.02 * h * h * h; };
  return p(0.5 * x[0] - 0.25 * x[1] + x[2] + 0.1) -
         p(0.125 * x[0] + 0.75 * x[1] - 0.5 * x[2] - 0.2);
}

class ModelPlannerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(device_, testing::OpenTestDevice("cpu")); }
  std::unique_ptr<runtime::Device> device_;
};

TEST_F(ModelPlannerTest, ErrorsAreMeasuredAndStandInTheProgram) {
  ASSERT_OK_AND_ASSIGN(const PlannedModel planned,
                       PlanModel(SmallModel(), {}, *device_, {.plan = {.max_error = 1e-5}}));
  EXPECT_EQ(planned.sample_count, 64);
  EXPECT_GT(planned.measured_error, 0);
  EXPECT_LE(planned.measured_error, 1e-5);
  EXPECT_LE(planned.measured_error, planned.estimated_error);
  const programs::MeasuredErrors& errors = planned.program->spec.outputs[0].errors;
  EXPECT_EQ(errors.element_count, 64);
  EXPECT_EQ(errors.largest, planned.measured_error);
  EXPECT_GT(errors.root_mean_square, 0);
  EXPECT_LE(errors.root_mean_square, errors.largest);
  EXPECT_GT(planned.measured_seconds, 0);
  EXPECT_EQ(planned.predicted.seconds.size(), planned.program->spec.operations.size());
}

TEST_F(ModelPlannerTest, WhatIsComparedIsTheModel) {
  // An error that is made in the model's twin and in the lowering alike would not show above.
  ASSERT_OK_AND_ASSIGN(const PlannedModel planned, PlanModel(SmallModel(), {}, *device_, {}));
  ASSERT_OK_AND_ASSIGN(const auto local, LocalProgram::Make(planned.program, *device_));
  const Vectors samples = {{0.5, -1, 2}, {-2, 2, 0}, {0, 0, 0}};
  ASSERT_OK_AND_ASSIGN(const NamedVectors outputs, local->Evaluate({{"x", samples}}));
  for (size_t k = 0; k < samples.size(); ++k) {
    EXPECT_NEAR(outputs.at("score")[k][0], Score(samples[k]), 1e-4);
  }
}

TEST_F(ModelPlannerTest, OnlyTheFirstSamplesAreEncrypted) {
  planning::TensorBatch samples = {{"x", std::vector<std::vector<double>>(10, {0.5, -1, 2})}};
  ASSERT_OK_AND_ASSIGN(const PlannedModel planned,
                       PlanModel(SmallModel(), samples, *device_, {.encrypted_sample_count = 3}));
  EXPECT_EQ(planned.sample_count, 3);
  EXPECT_EQ(planned.program->spec.outputs[0].errors.element_count, 3);
}

TEST_F(ModelPlannerTest, ArgumentsOutsideTheRangeOfAPolynomialAreTold) {
  ASSERT_OK_AND_ASSIGN(const PlannedModel inside, PlanModel(SmallModel(), {}, *device_, {}));
  EXPECT_TRUE(inside.range_excesses.empty());
  // The polynomial is fitted over [-4, 4].
  const planning::TensorBatch samples = {{"x", {{2, -2, 1}, {2, -2, 2.8}}}};
  ASSERT_OK_AND_ASSIGN(const PlannedModel outside, PlanModel(SmallModel(), samples, *device_, {}));
  ASSERT_EQ(outside.range_excesses.size(), 1u);
  EXPECT_EQ(outside.range_excesses[0].operation, "p");
  EXPECT_EQ(outside.range_excesses[0].outside_count, 1);
}

TEST_F(ModelPlannerTest, AnOutputThatIsNotFiniteIsRefused) {
  const planning::TensorBatch samples = {{"x", {{1, 1, 1}, {1e200, 0, 0}}}};
  EXPECT_THAT(PlanModel(SmallModel(), samples, *device_, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model 'small', output 'score': expected finite numbers, got "
                                 "another one for sample 1")));
}

TEST_F(ModelPlannerTest, TheRangeOfAnInputIsThatOfTheModelAndTheSamplesTwiceAsWide) {
  ASSERT_OK_AND_ASSIGN(const PlannedModel made, PlanModel(SmallModel(), {}, *device_, {}));
  EXPECT_EQ(made.program->spec.inputs[0].lower, -4);
  EXPECT_EQ(made.program->spec.inputs[0].upper, 4);
  // From -2 to 3 in all: 0.5 and 2.5 on either side.
  const planning::TensorBatch samples = {{"x", {{1, 3, 2}, {1, 1, 1}}}};
  ASSERT_OK_AND_ASSIGN(const PlannedModel wider, PlanModel(SmallModel(), samples, *device_, {}));
  EXPECT_EQ(wider.program->spec.inputs[0].lower, -4.5);
  EXPECT_EQ(wider.program->spec.inputs[0].upper, 5.5);
  ASSERT_OK_AND_ASSIGN(const auto local, LocalProgram::Make(wider.program, *device_));
  EXPECT_THAT(local->Evaluate({{"x", {{0, 0, 0}, {0, 5.75, 0}}}}),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("inputs['x'][1][1]")));
}

TEST_F(ModelPlannerTest, SamplesAndOptionsThatDoNotFitAreRefused) {
  EXPECT_THAT(PlanModel(SmallModel(), {{"x", {{1, 2}}}}, *device_, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x")));
  EXPECT_THAT(PlanModel(SmallModel(), {{"z", {{1, 2, 3}}}}, *device_, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x")));
  EXPECT_THAT(PlanModel(SmallModel(), {}, *device_, {.magnitude_margin = 0.5}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("magnitude_margin")));
  EXPECT_THAT(PlanModel(SmallModel(), {}, *device_, {.encrypted_sample_count = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("encrypted_sample_count")));
}

}  // namespace
}  // namespace cipherd::client
