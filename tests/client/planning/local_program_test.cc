#include "client/planning/local_program.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status_macros.h"
#include "core/planning/chebyshev_fit.h"
#include "core/planning/circuit_builder.h"
#include "core/planning/circuit_twin.h"
#include "core/planning/edge_magnitudes.h"
#include "core/planning/plan.h"
#include "core/planning/polynomial_circuit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planning/plan_circuits.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using planning::Circuit;
using planning::NamedNumbers;
using planning::Plan;
using ::testing::HasSubstr;

absl::StatusOr<Plan> PlanOf(const Circuit& circuit, double max_error) {
  CIPHERD_ASSIGN_OR_RETURN(
      const planning::EdgeMagnitudes magnitudes,
      planning::MeasureMagnitudes(circuit, planning::RandomSamples(circuit, 30, 7)));
  return planning::MakePlan(circuit, magnitudes, {.max_error = max_error});
}

// The largest difference of any element of any output from the circuit in float64.
double LargestError(const Circuit& circuit, const std::vector<NamedNumbers>& samples,
                    const NamedVectors& outputs) {
  double largest = 0;
  for (size_t k = 0; k < samples.size(); ++k) {
    const NamedNumbers expected = *planning::EvaluateCircuit(circuit, samples[k]);
    for (const auto& [name, elements] : expected) {
      const std::vector<double>& actual = outputs.at(name).at(k);
      if (actual.size() != elements.size()) return INFINITY;
      for (size_t j = 0; j < elements.size(); ++j) {
        largest = std::max(largest, std::abs(actual[j] - elements[j]));
      }
    }
  }
  return largest;
}

NamedVectors VectorsOf(const std::vector<NamedNumbers>& samples) {
  NamedVectors vectors;
  for (const NamedNumbers& sample : samples) {
    for (const auto& [name, elements] : sample) vectors[name].push_back(elements);
  }
  return vectors;
}

class LocalProgramTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(device_, testing::OpenTestDevice("cpu")); }

  // Errors are below the estimate, and not so far below it that it says nothing.
  void ExpectErrorsAsEstimated(const Circuit& circuit, double max_error, int64_t sample_count) {
    ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(circuit, max_error));
    ASSERT_OK_AND_ASSIGN(const auto local, LocalProgram::Make(plan.program, *device_));
    const std::vector<NamedNumbers> samples = planning::RandomSamples(circuit, sample_count, 3);
    ASSERT_OK_AND_ASSIGN(const NamedVectors outputs, local->Evaluate(VectorsOf(samples)));
    const double error = LargestError(circuit, samples, outputs);
    EXPECT_LE(error, plan.estimated_error);
    EXPECT_GE(error, plan.estimated_error / 30);
    EXPECT_LE(plan.estimated_error, max_error);
  }

  std::unique_ptr<runtime::Device> device_;
};

TEST_F(LocalProgramTest, ANetworkAgreesWithItsTwin) {
  ExpectErrorsAsEstimated(planning::SmallNetwork(), 1e-3, 254);
  ExpectErrorsAsEstimated(planning::SmallNetwork(), 1e-6, 254);
}

TEST_F(LocalProgramTest, ValuesOfManyDepthsMeet) {
  ExpectErrorsAsEstimated(planning::ManyDepths(), 1e-4, 254);
}

TEST_F(LocalProgramTest, AFittedSigmoidAgreesWithItsTwin) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  ASSERT_OK_AND_ASSIGN(const planning::Polynomial fit, planning::ChebyshevFit(sigmoid, -8, 8, 15));
  planning::CircuitBuilder builder("sigmoid", 16);
  const std::string x = builder.Input("x", 16, /*magnitude_bound=*/8);
  ASSERT_OK_AND_ASSIGN(const std::string y, planning::AppendPolynomial(builder, x, fit, "y"));
  builder.Output({.name = "y", .edge = y, .element_count = 16, .magnitude_bound = 2});
  ExpectErrorsAsEstimated(std::move(builder).Build(), 1e-5, 64);
}

TEST_F(LocalProgramTest, ItemsBeyondACiphertextTakeAnother) {
  const Circuit circuit = planning::SmallNetwork();
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(circuit, 1e-3));
  ASSERT_OK_AND_ASSIGN(const auto local, LocalProgram::Make(plan.program, *device_));
  const std::vector<NamedNumbers> samples =
      planning::RandomSamples(circuit, 2 * plan.item_count + 1, 3);
  ASSERT_OK_AND_ASSIGN(const NamedVectors outputs, local->Evaluate(VectorsOf(samples)));
  EXPECT_EQ(outputs.at("scores").size(), samples.size());
  EXPECT_LE(LargestError(circuit, samples, outputs), 1e-3);
  EXPECT_GT(local->replay_seconds(), 0);
}

TEST_F(LocalProgramTest, InputsThatDoNotFitAreRefusedByName) {
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(planning::ManyDepths(), 1e-3));
  ASSERT_OK_AND_ASSIGN(const auto local, LocalProgram::Make(plan.program, *device_));
  const std::vector<double> eight(8, 0.5);
  const std::vector<double> five(5, 0.5);
  EXPECT_THAT(local->Evaluate({{"x", {eight}}, {"y", {five}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inputs['late']")));
  EXPECT_THAT(local->Evaluate({{"x", {eight}}, {"y", {five}}, {"late", {eight}}, {"w", {eight}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no input 'w'")));
  EXPECT_THAT(
      local->Evaluate({{"x", {eight}}, {"y", {five, five}}, {"late", {eight}}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inputs['y']: expected 1 vectors")));
  EXPECT_THAT(local->Evaluate({{"x", {eight}}, {"y", {eight}}, {"late", {eight}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("inputs['y'][0]: expected 5 elements, got 8")));
}

}  // namespace
}  // namespace cipherd::client
