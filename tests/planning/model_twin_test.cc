#include "core/planning/model_twin.h"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planning/random_model.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// 1, 2, …
std::vector<double> Counting(int64_t count, double first = 1) {
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// Of one operation on `x`.
std::vector<double> ResultOf(ModelOperation operation, const Shape& shape,
                             const std::vector<double>& x,
                             const programs::Constants& constants = {}) {
  Model model;
  model.name = "one";
  model.inputs = {{.name = "x", .shape = shape}};
  operation.name = "y";
  operation.a = "x";
  model.operations = {operation};
  model.outputs = {{"y", "y"}};
  model.constants = constants;
  const absl::StatusOr<TensorBatch> values = EvaluateModel(model, {{"x", {x}}});
  EXPECT_OK(values);
  return values.ok() ? values->at("y")[0] : std::vector<double>();
}

// The examples of ONNX's operator pages.
TEST(ModelTwinTest, ConvolutionIsThatOfOnnx) {
  const programs::Constants constants = {
      {"w", TensorOf({1, 1, 3, 3}, std::vector<double>(9, 1.0))}};
  const std::vector<double> x = Counting(25, 0);
  EXPECT_THAT(ResultOf({.kind = ModelKind::kConv2d, .weight = "w", .pads = {1, 1, 1, 1}}, {1, 5, 5},
                       x, constants),
              ElementsAre(12, 21, 27, 33, 24, 33, 54, 63, 72, 51, 63, 99, 108, 117, 81, 93, 144,
                          153, 162, 111, 72, 111, 117, 123, 84));
  EXPECT_THAT(ResultOf({.kind = ModelKind::kConv2d, .weight = "w"}, {1, 5, 5}, x, constants),
              ElementsAre(54, 63, 72, 99, 108, 117, 144, 153, 162));
  EXPECT_THAT(
      ResultOf({.kind = ModelKind::kConv2d, .weight = "w", .strides = {2, 2}, .pads = {1, 0, 1, 0}},
               {1, 7, 5}, Counting(35, 0), constants),
      ElementsAre(21, 33, 99, 117, 189, 207, 171, 183));
}

TEST(ModelTwinTest, ConvolutionInGroupsWithDilation) {
  // Two groups of one channel; 1 and 10 times the upper left, and 100 times the lower right.
  const programs::Constants constants = {
      {"w", TensorOf({2, 1, 2, 2}, std::vector<double>{1, 0, 0, 100, 10, 0, 0, 100})},
      {"b", TensorOf({2}, std::vector<double>{0.5, 0.25})}};
  EXPECT_THAT(ResultOf({.kind = ModelKind::kConv2d,
                        .weight = "w",
                        .bias = "b",
                        .dilations = {1, 2},
                        .groups = 2},
                       {2, 2, 3}, Counting(12), constants),
              ElementsAre(1 + 600 + 0.5, 70 + 1200 + 0.25));
}

TEST(ModelTwinTest, AveragePoolIsThatOfOnnx) {
  const std::vector<double> x = Counting(25);
  EXPECT_THAT(
      ResultOf({.kind = ModelKind::kAveragePool2d, .pads = {2, 2, 2, 2}, .kernel = {5, 5}},
               {1, 5, 5}, x),
      Pointwise(::testing::DoubleNear(1e-12),
                {7.0,  7.5,  8.0,  8.5,  9.0,  9.5,  10.0, 10.5, 11.0, 11.5, 12.0, 12.5, 13.0,
                 13.5, 14.0, 14.5, 15.0, 15.5, 16.0, 16.5, 17.0, 17.5, 18.0, 18.5, 19.0}));
  EXPECT_THAT(ResultOf({.kind = ModelKind::kAveragePool2d, .strides = {2, 2}, .kernel = {2, 2}},
                       {1, 5, 5}, x),
              ElementsAre(4, 6, 14, 16));
  // The corner of a padded pool is a quarter of what it is without the padding.
  for (bool counts : {false, true}) {
    EXPECT_EQ(ResultOf({.kind = ModelKind::kAveragePool2d,
                        .pads = {1, 1, 0, 0},
                        .kernel = {2, 2},
                        .count_include_pad = counts},
                       {1, 2, 2}, {8, 0, 0, 0})[0],
              counts ? 2 : 8);
  }
}

TEST(ModelTwinTest, LinearAndElementwiseOperations) {
  const programs::Constants constants = {
      {"w", TensorOf({2, 4}, std::vector<double>{1, 2, 3, 4, 0, 0, 0, -1})},
      {"b", TensorOf({2}, std::vector<double>{100, 200})},
      {"row", TensorOf({2}, std::vector<double>{10, 20})},
      {"column", TensorOf({2, 1}, std::vector<double>{10, 20})},
      {"i", TensorOf({3}, std::vector<int64_t>{3, 0, 3})}};
  const auto result = [&](ModelOperation operation) {
    return ResultOf(std::move(operation), {2, 2}, {1, 2, 3, -4}, constants);
  };
  EXPECT_THAT(result({.kind = ModelKind::kLinear, .weight = "w", .bias = "b"}),
              ElementsAre(98, 204));
  EXPECT_THAT(result({.kind = ModelKind::kLinear, .weight = "w"}), ElementsAre(-2, 4));
  EXPECT_THAT(result({.kind = ModelKind::kAdd, .b = "x"}), ElementsAre(2, 4, 6, -8));
  EXPECT_THAT(result({.kind = ModelKind::kSubtract, .b = "x"}), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(result({.kind = ModelKind::kMultiply, .b = "x"}), ElementsAre(1, 4, 9, 16));
  EXPECT_THAT(result({.kind = ModelKind::kNegate}), ElementsAre(-1, -2, -3, 4));
  EXPECT_THAT(result({.kind = ModelKind::kSquare}), ElementsAre(1, 4, 9, 16));
  EXPECT_THAT(result({.kind = ModelKind::kAddConstant, .constant = "row"}),
              ElementsAre(11, 22, 13, 16));
  EXPECT_THAT(result({.kind = ModelKind::kMultiplyConstant, .constant = "column"}),
              ElementsAre(10, 20, 60, -80));
  EXPECT_THAT(result({.kind = ModelKind::kSum}), ElementsAre(2));
  EXPECT_THAT(result({.kind = ModelKind::kSum, .axes = {0}}), ElementsAre(4, -2));
  EXPECT_THAT(result({.kind = ModelKind::kSum, .axes = {-1}}), ElementsAre(3, -1));
  EXPECT_THAT(result({.kind = ModelKind::kReshape, .shape = {-1}}), ElementsAre(1, 2, 3, -4));
  EXPECT_THAT(result({.kind = ModelKind::kSelect, .indices = "i"}), ElementsAre(-4, 1, -4));
}

TEST(ModelTwinTest, PolynomialsInBothBases) {
  EXPECT_THAT(ResultOf({.kind = ModelKind::kPolynomial,
                        .polynomial = {PolynomialBasis::kPower, {1, -2, 0, 3}, -1, 1}},
                       {2}, {2, -1}),
              ElementsAre(1 - 4 + 24, 1 + 2 - 3));
  // T_3(t) = 4t³ - 3t with t = (x - 3) / 2.
  const std::vector<double> x = {1, 2, 3, 4.5};
  const std::vector<double> y =
      ResultOf({.kind = ModelKind::kPolynomial,
                .polynomial = {PolynomialBasis::kChebyshev, {0.5, 2, 0, 1}, 1, 5}},
               {4}, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double t = (x[i] - 3) / 2;
    EXPECT_NEAR(y[i], 0.5 + 2 * t + 4 * t * t * t - 3 * t, 1e-14);
  }
}

TEST(ModelTwinTest, SamplesThatDoNotFitAreNamed) {
  RandomModel model(1);
  model.Input("a", {2});
  model.Input("b", {2});
  model.Binary(ModelKind::kAdd, "y", "a", "b");
  model.Output("y");
  const auto refused = [&](const TensorBatch& samples, const char* what) {
    EXPECT_THAT(EvaluateModel(model.model(), samples),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  refused({{"a", {{1, 2}}}}, "input 'b': no sample");
  refused({{"a", {{1, 2}}}, {"b", {}}}, "input 'b': expected 1 samples");
  refused({{"a", {{1, 2}}}, {"b", {{1, 2, 3}}}}, "input 'b', sample 0: expected 2 numbers, got 3");
}

TEST(ModelTwinTest, MeasuredMagnitudesAreTheLargestTimesTheMargin) {
  RandomModel model(1);
  model.Input("x", {2});
  model.Square("y", "x");
  model.Output("y");
  ASSERT_OK_AND_ASSIGN(const Magnitudes magnitudes,
                       MeasureMagnitudes(model.model(), {{"x", {{0.5, -3}, {1, 2}}}}, 1.5));
  EXPECT_EQ(magnitudes.at("x"), 4.5);
  EXPECT_EQ(magnitudes.at("y"), 13.5);
}

TEST(ModelTwinTest, BoundsHoldForWhateverKeepsTheBoundsOfInputs) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    RandomModel model(seed);
    model.Input("x", {1, 6, 6});
    model.model().inputs[0].lower = -0.25;
    model.Conv("c", "x", {2, 1, 3, 3}, {.pads = {1, 1, 1, 1}});
    model.Add({.name = "p",
               .kind = ModelKind::kPolynomial,
               .a = "c",
               .polynomial = {PolynomialBasis::kChebyshev, {0.3, -0.5, 0.2, 0.7}, -6, 6}});
    model.Square("s", "p");
    model.Pool("m", "s", {2, 2}, {.strides = {2, 2}});
    model.Linear("y", "m", 3);
    model.Output("y");
    const Magnitudes bounds = BoundMagnitudes(model.model());
    ASSERT_OK_AND_ASSIGN(const Magnitudes measured,
                         MeasureMagnitudes(model.model(), model.Samples(50), 1));
    for (const auto& [name, magnitude] : measured) {
      EXPECT_LE(magnitude, bounds.at(name)) << name;
      // They are bounds of this model, not of anything.
      EXPECT_GE(magnitude, bounds.at(name) / 20) << name;
    }
  }
}

}  // namespace
}  // namespace cipherd::planning
