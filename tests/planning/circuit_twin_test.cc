#include "core/planning/circuit_twin.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/planning/circuit_builder.h"
#include "core/planning/circuit_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;
using ::testing::UnorderedElementsAre;

TEST(CircuitTwin, EveryKindIsEvaluatedByPositions) {
  CircuitBuilder builder("test", 4);
  const std::string a = builder.Input("a", 4);
  const std::string b = builder.Input("b", 4);
  builder.Add(a, b, "sum");
  builder.Subtract(a, b, "difference");
  builder.Negate(a, "negative");
  builder.Multiply(a, b, "product");
  builder.Square(a, "square");
  builder.AddPlain(a, {{10, 20}}, "add_plain");
  builder.SubtractPlain(a, {{10, 20, 30, 40}}, "subtract_plain");
  builder.MultiplyPlain(a, 0.5, "multiply_plain");
  builder.Rotate(a, 1, "left");
  builder.Rotate(a, -5, "right");
  builder.LinearTransform(a, {{1, 2, 3, 4, 10, 20, 30, 40}}, {{0, 3}}, "transform");
  builder.LinearTransform(a, {{1, 2}}, {{2}}, "periodic");
  const Circuit circuit = std::move(builder).Build();
  ASSERT_OK_AND_ASSIGN(const auto edges,
                       EvaluateCircuitEdges(circuit, {{"a", {1, 2, 3, 4}}, {"b", {5, 7, 9, 11}}}));
  EXPECT_THAT(edges.at("a"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(edges.at("sum"), ElementsAre(6, 9, 12, 15));
  EXPECT_THAT(edges.at("difference"), ElementsAre(-4, -5, -6, -7));
  EXPECT_THAT(edges.at("negative"), ElementsAre(-1, -2, -3, -4));
  EXPECT_THAT(edges.at("product"), ElementsAre(5, 14, 27, 44));
  EXPECT_THAT(edges.at("square"), ElementsAre(1, 4, 9, 16));
  EXPECT_THAT(edges.at("add_plain"), ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(edges.at("subtract_plain"), ElementsAre(-9, -18, -27, -36));
  EXPECT_THAT(edges.at("multiply_plain"), ElementsAre(0.5, 1, 1.5, 2));
  EXPECT_THAT(edges.at("left"), ElementsAre(2, 3, 4, 1));
  EXPECT_THAT(edges.at("right"), ElementsAre(4, 1, 2, 3));
  EXPECT_THAT(edges.at("transform"), ElementsAre(1 + 40, 4 + 20, 9 + 60, 16 + 120));
  EXPECT_THAT(edges.at("periodic"), ElementsAre(3, 8, 1, 4));
  EXPECT_EQ(edges.size(), 14u);
}

// A product of a matrix by diagonals against the same by rows.
TEST(CircuitTwin, DiagonalsMultiplyByAMatrix) {
  constexpr int64_t kCount = 16;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  double matrix[kCount][kCount];
  std::vector<double> x(kCount);
  std::vector<double> diagonals;
  std::vector<int64_t> offsets;
  for (auto& row : matrix) {
    for (double& entry : row) entry = normal(random);
  }
  for (double& element : x) element = normal(random);
  for (int64_t offset = 0; offset < kCount; ++offset) {
    offsets.push_back(offset);
    for (int64_t p = 0; p < kCount; ++p) diagonals.push_back(matrix[p][(p + offset) % kCount]);
  }
  CircuitBuilder builder("test", kCount);
  const std::string y = builder.LinearTransform(builder.Input("x", kCount), diagonals, offsets);
  builder.Output({.name = "y", .edge = y, .element_count = kCount});
  ASSERT_OK_AND_ASSIGN(const auto outputs, EvaluateCircuit(std::move(builder).Build(), {{"x", x}}));
  for (int64_t p = 0; p < kCount; ++p) {
    double expected = 0;
    for (int64_t j = 0; j < kCount; ++j) expected += matrix[p][j] * x[j];
    // 16 products and sums of numbers below 4 in magnitude, in two orders.
    EXPECT_NEAR(outputs.at("y")[p], expected, 1e-12);
  }
}

// Squares of three elements, and of two of them, seven positions apart.
Circuit TwoOutputs() {
  CircuitBuilder builder("test", 8);
  const std::string x = builder.Input("x", 3);
  const std::string square = builder.Square(x);
  builder.Output({.name = "squares", .edge = square, .element_count = 3});
  builder.Output(
      {.name = "odd", .edge = builder.Rotate(square, 1), .element_count = 2, .element_stride = 7});
  return std::move(builder).Build();
}

TEST(CircuitTwin, InputsAreFilledWithZerosAndOutputsReadAtTheirStride) {
  const Circuit circuit = TwoOutputs();
  ASSERT_OK(CheckCircuit(circuit));
  ASSERT_OK_AND_ASSIGN(const auto outputs, EvaluateCircuit(circuit, {{"x", {2, 3, 4}}}));
  EXPECT_THAT(outputs, UnorderedElementsAre(::testing::Pair("squares", ElementsAre(4, 9, 16)),
                                            ::testing::Pair("odd", ElementsAre(9, 4))));
  ASSERT_OK_AND_ASSIGN(const auto edges, EvaluateCircuitEdges(circuit, {{"x", {2, 3, 4}}}));
  EXPECT_THAT(edges.at("square"), ElementsAre(4, 9, 16, 0, 0, 0, 0, 0));
  EXPECT_EQ(OutputsOf(circuit, edges), outputs);
}

TEST(CircuitTwin, InputsAreGivenWholeAndNoOthers) {
  const Circuit circuit = TwoOutputs();
  EXPECT_THAT(EvaluateCircuit(circuit, {{"x", {1, 2}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("circuit 'test', input 'x': expected 3 elements, got 2")));
  EXPECT_THAT(EvaluateCircuit(circuit, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                     HasSubstr("expected 3 elements, got 0")));
  EXPECT_THAT(EvaluateCircuit(circuit, {{"x", {1, 2, 3}}, {"w", {}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'test' has no input 'w'")));
}

}  // namespace
}  // namespace cipherd::planning
