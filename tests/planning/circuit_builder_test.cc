#include "core/planning/circuit_builder.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/planning/circuit_check.h"
#include "core/planning/circuit_twin.h"
#include "core/programs/names.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::vector<int64_t> ShapeOf(const Circuit& circuit, const std::string& constant) {
  return circuit.constants.find(constant)->second.shape();
}

int64_t CountOf(const Circuit& circuit, CircuitKind kind) {
  return std::count_if(
      circuit.operations.begin(), circuit.operations.end(),
      [kind](const CircuitOperation& operation) { return operation.kind == kind; });
}

// 1, 2, 3, …
std::vector<double> Numbers(int64_t count) {
  std::vector<double> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<double>(i + 1);
  return numbers;
}

TEST(CircuitBuilder, EdgesOfOneBaseAreNumbered) {
  CircuitBuilder builder("test", 4);
  const std::string x = builder.Input("x", 4);
  EXPECT_EQ(builder.Square(x), "square");
  EXPECT_EQ(builder.Square(x), "square_2");
  EXPECT_EQ(builder.Negate(x, "h"), "h");
  EXPECT_EQ(builder.Negate(x, "h_2"), "h_2");
  EXPECT_EQ(builder.Add(x, x, "h"), "h_3");
  EXPECT_EQ(builder.Add(x, x, "x"), "x_2");
}

TEST(CircuitBuilder, AnyTextServesAsABase) {
  CircuitBuilder builder("test", 4);
  const std::string x = builder.Input("x", 4);
  EXPECT_EQ(builder.Square(x, "/conv 1/Relu:0"), "_conv_1_Relu_0");
  const std::string longest(200, 'a');
  const std::string first = builder.Square(x, longest);
  const std::string second = builder.Square(x, longest);
  EXPECT_NE(first, second);
  EXPECT_OK(programs::CheckEdgeName(first));
  EXPECT_OK(programs::CheckEdgeName(second));
  EXPECT_OK(programs::CheckEdgeName(builder.InnerSum(x, 3, 1, longest)));
}

TEST(CircuitBuilder, EveryKindIsAppendedWithItsOperands) {
  CircuitBuilder builder("test", 4);
  const std::string x = builder.Input({.name = "x", .element_count = 3, .magnitude_bound = 2});
  const std::string sum = builder.Add(x, builder.Negate(x));
  const std::string difference = builder.Subtract(sum, x);
  const std::string product = builder.Multiply(difference, builder.Square(x));
  const std::string shifted = builder.AddPlain(product, Numbers(4));
  const std::string back = builder.SubtractPlain(shifted, Numbers(2));
  const std::string scaled = builder.MultiplyPlain(back, 0.5);
  const std::string turned = builder.Rotate(scaled, -1);
  builder.Output({.name = "y", .edge = builder.LinearTransform(turned, Numbers(8), {{0, 1}})});
  const Circuit circuit = std::move(builder).Build();
  EXPECT_OK(CheckCircuit(circuit));
  std::vector<std::string> kinds;
  for (const CircuitOperation& operation : circuit.operations) {
    kinds.emplace_back(ToString(operation.kind));
  }
  EXPECT_THAT(kinds, ElementsAre("negate", "add", "subtract", "square", "multiply", "add_plain",
                                 "subtract_plain", "multiply_plain", "rotate", "linear_transform"));
  EXPECT_EQ(circuit.operations[1].a, "x");
  EXPECT_EQ(circuit.operations[1].b, "negate");
  EXPECT_EQ(circuit.operations[4].a, "subtract");
  EXPECT_EQ(circuit.operations[4].b, "square");
  EXPECT_EQ(circuit.operations[8].step, -1);
  EXPECT_EQ(circuit.operations[9].constant, "linear_transform.diagonals");
  EXPECT_EQ(circuit.operations[9].offsets, "linear_transform.offsets");
  EXPECT_EQ(ShapeOf(circuit, "linear_transform.diagonals"), (std::vector<int64_t>{2, 4}));
}

TEST(CircuitBuilder, EqualConstantsAreStoredOnce) {
  CircuitBuilder builder("test", 4);
  const std::string x = builder.Input("x", 4);
  builder.AddPlain(x, Numbers(4), "first");
  builder.MultiplyPlain(x, Numbers(4), "second");
  builder.MultiplyPlain(x, Numbers(2), "third");
  builder.LinearTransform(x, Numbers(4), {{0}}, "fourth");
  const Circuit circuit = std::move(builder).Build();
  EXPECT_EQ(circuit.operations[1].constant, "first.values");
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;
  for (const auto& [name, tensor] : circuit.constants) shapes.emplace_back(name, tensor.shape());
  EXPECT_THAT(shapes, UnorderedElementsAre(Pair("first.values", ElementsAre(4)),
                                           Pair("third.values", ElementsAre(2)),
                                           Pair("fourth.diagonals", ElementsAre(1, 4)),
                                           Pair("fourth.offsets", ElementsAre(1))));
}

TEST(CircuitBuilder, ConstantsAreStoredAtTheirSmallestPeriod) {
  CircuitBuilder builder("test", 8);
  const std::string x = builder.Input("x", 8);
  builder.AddPlain(x, std::vector<double>(8, 3.0), "scalar");
  builder.AddPlain(x, {{1, 2, 1, 2, 1, 2, 1, 2}}, "pairs");
  builder.AddPlain(x, {{1, 2, 1, 2, 1, 2, 1, 3}}, "all");
  builder.LinearTransform(x, {{1, 2, 1, 2, 3, 3, 3, 3}}, {{0, 1}}, "rows");
  const Circuit circuit = std::move(builder).Build();
  EXPECT_EQ(ShapeOf(circuit, "scalar.values"), std::vector<int64_t>{1});
  EXPECT_EQ(ShapeOf(circuit, "pairs.values"), std::vector<int64_t>{2});
  EXPECT_EQ(ShapeOf(circuit, "all.values"), std::vector<int64_t>{8});
  EXPECT_EQ(ShapeOf(circuit, "rows.diagonals"), (std::vector<int64_t>{2, 2}));
  const double* rows = circuit.constants.find("rows.diagonals")->second.data_as<const double>();
  EXPECT_THAT(std::vector<double>(rows, rows + 4), ElementsAre(1, 2, 3, 3));
}

TEST(CircuitBuilder, OffsetsAreTakenModuloThePositions) {
  CircuitBuilder builder("test", 8);
  builder.LinearTransform(builder.Input("x", 8), Numbers(3), {{-1, 8, 17}}, "t");
  const Circuit circuit = std::move(builder).Build();
  const int64_t* offsets = circuit.constants.find("t.offsets")->second.data_as<const int64_t>();
  EXPECT_THAT(std::vector<int64_t>(offsets, offsets + 3), ElementsAre(7, 0, 1));
}

TEST(CircuitBuilder, DiagonalsOfUnequalLengthsAreLeftToTheCheck) {
  CircuitBuilder builder("test", 8);
  const std::string t = builder.LinearTransform(builder.Input("x", 8), Numbers(7), {{0, 1}}, "t");
  builder.Output({.name = "y", .edge = t});
  EXPECT_THAT(CheckCircuit(std::move(builder).Build()),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("expected float64 [count, length], got "
                                                     "float64 [7]")));
}

TEST(CircuitBuilder, ARotationThatMovesNothingIsNone) {
  CircuitBuilder builder("test", 8);
  const std::string x = builder.Input("x", 8);
  EXPECT_EQ(builder.Rotate(x, 0), x);
  EXPECT_EQ(builder.Rotate(x, -16), x);
  EXPECT_NE(builder.Rotate(x, 9), x);
}

TEST(CircuitBuilder, AMaskKeepsItsPositions) {
  CircuitBuilder builder("test", 8);
  builder.Output({.name = "y",
                  .edge = builder.Mask(builder.Input("x", 8), {{1, -1, 10}}),
                  .element_count = 8});
  const Circuit circuit = std::move(builder).Build();
  ASSERT_OK_AND_ASSIGN(const auto outputs, EvaluateCircuit(circuit, {{"x", Numbers(8)}}));
  EXPECT_THAT(outputs.at("y"), ElementsAre(0, 2, 3, 0, 0, 0, 0, 8));
}

// ---- inner sums

class InnerSum : public ::testing::TestWithParam<int64_t> {};

TEST_P(InnerSum, AddsTheWindowWithTheFewestRotations) {
  const int64_t position_count = 64;
  const std::vector<double> x = Numbers(position_count);
  // All strides, among them those of windows that go around more than once.
  for (const int64_t stride : {1, 3, 16, 64, -2}) {
    const int64_t count = GetParam();
    CircuitBuilder builder("test", position_count);
    const std::string sum = builder.InnerSum(builder.Input("x", position_count), count, stride);
    builder.Output({.name = "y", .edge = builder.Negate(sum), .element_count = position_count});
    const Circuit circuit = std::move(builder).Build();
    ASSERT_OK(CheckCircuit(circuit));
    ASSERT_OK_AND_ASSIGN(const auto outputs, EvaluateCircuit(circuit, {{"x", x}}));
    for (int64_t p = 0; p < position_count; ++p) {
      double expected = 0;
      for (int64_t i = 0; i < count; ++i) {
        expected += x[((p + i * stride) % position_count + position_count) % position_count];
      }
      ASSERT_EQ(outputs.at("y")[p], -expected) << "stride " << stride << ", position " << p;
    }
    const int64_t rotations = CountOf(circuit, CircuitKind::kRotate);
    const int64_t fewest = std::bit_width(static_cast<uint64_t>(count - 1));
    EXPECT_LE(rotations, fewest);
    if (stride == 1 && count <= position_count) {
      EXPECT_EQ(rotations, fewest);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, InnerSum, ::testing::Range<int64_t>(1, 71));

}  // namespace
}  // namespace cipherd::planning
