#include "core/planning/model_lowering.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/planning/circuit_check.h"
#include "core/planning/circuit_depth.h"
#include "core/planning/circuit_twin.h"
#include "gtest/gtest.h"
#include "tests/planning/random_network.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

int CountOf(const Circuit& circuit, CircuitKind kind) {
  return static_cast<int>(
      std::count_if(circuit.operations.begin(), circuit.operations.end(),
                    [=](const CircuitOperation& operation) { return operation.kind == kind; }));
}

int64_t DiagonalCount(const Circuit& circuit) {
  int64_t count = 0;
  for (const CircuitOperation& operation : circuit.operations) {
    if (operation.kind != CircuitKind::kLinearTransform) continue;
    count += circuit.constants.at(operation.offsets).element_count();
  }
  return count;
}

// The circuit of `model`, which agrees with its twin on samples, element by element and with every
// bound.
Circuit LoweredAndCompared(RandomModel& model, const LoweringOptions& options = {}) {
  const absl::StatusOr<Circuit> circuit = LowerModel(model.model(), options);
  EXPECT_OK(circuit);
  if (!circuit.ok()) return {};
  EXPECT_OK(CheckCircuit(*circuit));
  const TensorBatch samples = model.Samples(3);
  const absl::StatusOr<TensorBatch> expected = EvaluateModel(model.model(), samples);
  EXPECT_OK(expected);
  for (size_t item = 0; item < 3; ++item) {
    NamedNumbers inputs;
    for (const auto& [name, items] : samples) inputs[name] = items[item];
    const absl::StatusOr<NamedNumbers> edges = EvaluateCircuitEdges(*circuit, inputs);
    EXPECT_OK(edges);
    if (!edges.ok()) return {};
    const NamedNumbers outputs = OutputsOf(*circuit, *edges);
    for (size_t i = 0; i < circuit->outputs.size(); ++i) {
      const CircuitOutput& output = circuit->outputs[i];
      SCOPED_TRACE(output.name);
      const std::vector<double>& reference = expected->at(model.model().outputs[i].edge)[item];
      const std::vector<double>& actual = outputs.at(output.name);
      EXPECT_EQ(actual.size(), reference.size());
      if (actual.size() != reference.size()) return {};
      double largest = 1;
      for (double number : reference) largest = std::max(largest, std::abs(number));
      for (size_t j = 0; j < reference.size(); ++j) {
        EXPECT_NEAR(actual[j], reference[j], 1e-9 * largest) << "element " << j;
      }
      for (double number : edges->at(output.edge)) {
        EXPECT_LE(std::abs(number), output.magnitude_bound * (1 + 1e-9));
      }
    }
  }
  return *circuit;
}

TEST(ModelLoweringTest, PerceptronsOfOddSizes) {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{13, 7, 3},
                                            {64, 1},
                                            {1, 1},
                                            {1, 5},
                                            {30, 1},
                                            {10, 100, 4},
                                            {4, 4, 4, 4},
                                            {3, 64, 64, 2},
                                            {100, 33, 17}}) {
    RandomModel model(sizes.size());
    model.Input("x", {sizes[0]});
    std::string edge = "x";
    for (size_t i = 1; i < sizes.size(); ++i) {
      const std::string layer = absl::StrCat("layer", i);
      model.Linear(layer, edge, sizes[i]);
      edge = layer;
      if (i + 1 == sizes.size()) break;
      model.Square(layer + "_squared", edge);
      edge = layer + "_squared";
    }
    model.Output(edge);
    SCOPED_TRACE(ToString(sizes));
    const Circuit circuit = LoweredAndCompared(model);
    // A product a layer and a square between any two.
    EXPECT_EQ(CircuitDepth(circuit), 2 * (static_cast<int>(sizes.size()) - 1) - 1);
  }
}

// What deploy/train/fashion_mlp_program.py does by hand: 64 and 16 diagonals, 4 and 2 rotations.
TEST(ModelLoweringTest, FashionPerceptronIsAsGoodAsByHand) {
  RandomModel model(1);
  model.Input("images", {1, 28, 28});
  model.Linear("layer1", "images", 64);
  model.Square("hidden", "layer1");
  model.Linear("layer2", "hidden", 10);
  model.Output("layer2");
  const Circuit circuit = LoweredAndCompared(model);
  EXPECT_EQ(circuit.position_count, 1024);
  EXPECT_LE(DiagonalCount(circuit), 64 + 16);
  EXPECT_LE(CountOf(circuit, CircuitKind::kRotate), 6);
  EXPECT_EQ(CountOf(circuit, CircuitKind::kLinearTransform), 2);
  EXPECT_EQ(CircuitDepth(circuit), 3);
}

TEST(ModelLoweringTest, ConvolutionsOfEveryKind) {
  struct Case {
    Shape image;
    Shape weight;
    ModelOperation fields;
  };
  const std::vector<Case> cases = {
      {{1, 8, 8}, {4, 1, 3, 3}, {}},
      {{1, 28, 28}, {4, 1, 5, 5}, {.strides = {2, 2}}},
      {{3, 9, 7}, {5, 3, 3, 2}, {.pads = {1, 0, 2, 1}}},
      {{4, 8, 8}, {6, 2, 3, 3}, {.pads = {1, 1, 1, 1}, .groups = 2}},
      {{4, 8, 8}, {4, 1, 3, 3}, {.strides = {2, 1}, .pads = {1, 1, 1, 1}, .groups = 4}},
      {{2, 11, 11}, {3, 2, 3, 3}, {.strides = {3, 2}, .dilations = {2, 3}}},
      {{2, 5, 5}, {3, 2, 1, 1}, {}},
      {{2, 4, 4}, {8, 2, 4, 4}, {}},
      {{1, 1, 16}, {2, 1, 1, 5}, {.strides = {1, 2}, .pads = {0, 2, 0, 2}}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    RandomModel model(i);
    model.Input("x", cases[i].image);
    model.Conv("c", "x", cases[i].weight, cases[i].fields);
    model.Square("s", "c");
    model.Linear("y", "s", 5);
    model.Output("y");
    LoweredAndCompared(model);
    // As an output by itself.
    model.Output("c");
    LoweredAndCompared(model);
  }
}

TEST(ModelLoweringTest, StridedConvolutionLeavesItsResultsInPlace) {
  RandomModel model(5);
  model.Input("x", {1, 28, 28});
  model.Conv("c", "x", {4, 1, 5, 5}, {.strides = {2, 2}});
  model.Square("s", "c");
  model.Linear("y", "s", 10);
  model.Output("y");
  const Circuit circuit = LoweredAndCompared(model);
  EXPECT_EQ(circuit.position_count, 1024);
  // Four channels interleaved by rows and columns: 6 · 6 offsets, where each alone has 5 · 5. The
  // dense layer has one for each of 16 rows.
  EXPECT_LE(DiagonalCount(circuit), 36 + 16);
}

TEST(ModelLoweringTest, NetworksOfConvolutionsAndPools) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE(seed);
    RandomModel model(seed);
    model.Input("x", {1, 14, 14});
    model.Conv("c1", "x", {3, 1, 3, 3},
               {.strides = {1 + seed % 2, 1 + seed % 2}, .pads = {1, 1, 1, 1}});
    model.Square("s1", "c1");
    model.Pool("p1", "s1", {2, 2}, {.strides = {2, 2}, .count_include_pad = seed > 1});
    model.Conv("c2", "p1", {5, 3, 2, 2}, {.pads = {0, 1, 0, 0}});
    model.WithConstant(ModelKind::kMultiplyConstant, "scaled", "c2", {5, 1, 1});
    model.WithConstant(ModelKind::kAddConstant, "shifted", "scaled", {5, 1, 1});
    model.Square("s2", "shifted");
    model.Add({.name = "flat", .kind = ModelKind::kReshape, .a = "s2", .shape = {-1}});
    model.Linear("y", "flat", 10);
    model.Output("y");
    const Circuit circuit = LoweredAndCompared(model);
    // Pool and scale are part of the convolution between them.
    EXPECT_EQ(CircuitDepth(circuit), 5);
  }
}

// As one matrix, a convolution of 6 · 6 on images of twice the pitch: four times as many diagonals.
TEST(ModelLoweringTest, PoolStaysApartFromAWideConvolution) {
  RandomModel model(1);
  model.Input("x", {6, 24, 24});
  model.Pool("p", "x", {2, 2}, {.strides = {2, 2}});
  model.Conv("c", "p", {16, 6, 5, 5}, {});
  model.Square("s", "c");
  model.Linear("y", "s", 10);
  model.Output("y");
  const Circuit circuit = LoweredAndCompared(model);
  EXPECT_EQ(CircuitDepth(circuit), 4);
  EXPECT_LT(DiagonalCount(circuit), 400);
}

TEST(ModelLoweringTest, PoolsWithPadding) {
  for (bool count_include_pad : {false, true}) {
    RandomModel model(3);
    model.Input("x", {2, 7, 6});
    model.Pool("y", "x", {3, 2},
               {.strides = {2, 2}, .pads = {1, 0, 1, 1}, .count_include_pad = count_include_pad});
    model.Output("y");
    LoweredAndCompared(model);
  }
}

TEST(ModelLoweringTest, SeveralInputsAndOutputs) {
  RandomModel model(9);
  model.Input("a", {12});
  model.Input("b", {12});
  model.Input("c", {5});
  model.Binary(ModelKind::kMultiply, "products", "a", "b");
  model.Add({.name = "inner", .kind = ModelKind::kSum, .a = "products"});
  model.Linear("from_c", "c", 12);
  model.Binary(ModelKind::kAdd, "sum", "products", "from_c");
  model.Binary(ModelKind::kSubtract, "difference", "from_c", "a");
  model.Binary(ModelKind::kMultiply, "mixed", "sum", "difference");
  model.Linear("small", "mixed", 3);
  for (const char* edge : {"inner", "sum", "difference", "mixed", "small"}) model.Output(edge);
  LoweredAndCompared(model);
}

TEST(ModelLoweringTest, InnerProductTakesOneDepth) {
  RandomModel model(2);
  model.Input("query", {100});
  model.Input("key", {100});
  model.Binary(ModelKind::kMultiply, "products", "query", "key");
  model.Add({.name = "score", .kind = ModelKind::kSum, .a = "products"});
  model.Output("score");
  const Circuit circuit = LoweredAndCompared(model);
  EXPECT_EQ(CircuitDepth(circuit), 1);
  EXPECT_EQ(CountOf(circuit, CircuitKind::kRotate), 7);
}

TEST(ModelLoweringTest, ResidualConnections) {
  RandomModel model(4);
  model.Input("x", {20});
  model.Linear("h", "x", 20);
  model.Square("s", "h");
  model.Linear("f", "s", 20);
  model.Binary(ModelKind::kAdd, "sum", "h", "f");
  model.Binary(ModelKind::kSubtract, "rest", "sum", "x");
  model.Linear("y", "rest", 3);
  model.Output("y");
  model.Output("rest");
  LoweredAndCompared(model);
  // Layers would be of period 32 by themselves; what is added to an input is placed as it is.
  LoweredAndCompared(model, {.least_position_count = 256});
}

TEST(ModelLoweringTest, ResidualConnectionsOfImages) {
  for (bool is_output : {false, true}) {
    RandomModel model(4);
    model.Input("x", {1, 28, 28});
    model.Conv("c", "x", {4, 1, 5, 5}, {.strides = {2, 2}});
    model.Square("s", "c");
    model.Conv("d", "s", {4, 4, 3, 3}, {.pads = {1, 1, 1, 1}});
    model.Binary(ModelKind::kAdd, "sum", "d", "c");
    model.Linear("y", "sum", 3);
    model.Output("y");
    if (is_output) model.Output("sum");
    LoweredAndCompared(model);
  }
}

TEST(ModelLoweringTest, SumsReshapesAndSelections) {
  for (bool keep_axes : {false, true}) {
    RandomModel model(6);
    model.Input("x", {3, 4, 5});
    model.Add({.name = "rows",
               .kind = ModelKind::kSum,
               .a = "x",
               .axes = {-1, 0},
               .keep_axes = keep_axes});
    model.Add({.name = "flat", .kind = ModelKind::kReshape, .a = "x", .shape = {6, -1}});
    model.Square("s", "flat");
    model.Add({.name = "columns", .kind = ModelKind::kSum, .a = "s", .axes = {0}});
    model.model().constants["picked.i"] = TensorOf({4}, std::vector<int64_t>{59, 0, 7, 7});
    model.Add({.name = "picked", .kind = ModelKind::kSelect, .a = "s", .indices = "picked.i"});
    model.Add({.name = "turned", .kind = ModelKind::kNegate, .a = "picked"});
    for (const char* edge : {"rows", "columns", "turned"}) model.Output(edge);
    LoweredAndCompared(model);
  }
}

TEST(ModelLoweringTest, OutputsThatAreNoOperationsOfTheirOwn) {
  RandomModel model(8);
  model.Input("x", {6});
  model.Add({.name = "same", .kind = ModelKind::kReshape, .a = "x", .shape = {2, 3}});
  model.Square("s", "x");
  model.Add({.name = "again", .kind = ModelKind::kReshape, .a = "s", .shape = {3, 2}});
  for (const char* edge : {"same", "s", "again"}) model.Output(edge);
  LoweredAndCompared(model);
}

TEST(ModelLoweringTest, LayersOfZeros) {
  RandomModel model(8);
  model.Input("x", {6});
  model.Linear("y", "x", 2);
  model.model().constants["y.w"] = TensorOf({2, 6}, std::vector<double>(12, 0.0));
  model.Output("y");
  LoweredAndCompared(model);
  model.Binary(ModelKind::kSubtract, "nothing", "x", "x");
  model.Output("nothing");
  LoweredAndCompared(model);
}

TEST(ModelLoweringTest, PolynomialsOfAllDegrees) {
  for (int degree = 0; degree <= 9; ++degree) {
    for (PolynomialBasis basis : {PolynomialBasis::kPower, PolynomialBasis::kChebyshev}) {
      // The second range is one without 0, which positions without elements hold.
      for (const auto& [lower, upper] : {std::pair(-4.0, 3.0), {0.5, 1.0}}) {
        SCOPED_TRACE(::testing::Message()
                     << "degree " << degree << ", basis " << static_cast<int>(basis));
        RandomModel model(degree);
        model.Input("x", {5});
        model.model().inputs[0].lower = lower;
        model.model().inputs[0].upper = upper;
        model.Add({.name = "p",
                   .kind = ModelKind::kPolynomial,
                   .a = "x",
                   .polynomial = RandomPolynomial(basis, degree, lower, upper, model.random())});
        model.Linear("y", "p", 3);
        model.Output("p");
        model.Output("y");
        LoweredAndCompared(model);
      }
    }
  }
}

TEST(ModelLoweringTest, NormalisationOfAPolynomialIsPartOfTheLayerBefore) {
  RandomModel model(3);
  model.Input("x", {30});
  model.Linear("h", "x", 4);
  model.Add({.name = "p",
             .kind = ModelKind::kPolynomial,
             .a = "h",
             .polynomial = {PolynomialBasis::kChebyshev, {0.5, 0.25, 0, -0.125}, -10, 10}});
  model.Output("p");
  const Circuit circuit = LoweredAndCompared(model);
  RandomModel layer_only(3);
  layer_only.Input("x", {30});
  layer_only.Add({.name = "p",
                  .kind = ModelKind::kPolynomial,
                  .a = "x",
                  .polynomial = {PolynomialBasis::kChebyshev, {0.5, 0.25, 0, -0.125}, -1, 1}});
  layer_only.Output("p");
  const Circuit alone = LoweredAndCompared(layer_only);
  EXPECT_EQ(CircuitDepth(circuit), CircuitDepth(alone) + 1);
}

TEST(ModelLoweringTest, PolynomialOfDegreeTwoCostsASquare) {
  RandomModel model(3);
  model.Input("x", {30});
  model.Linear("h", "x", 8);
  model.Add({.name = "p",
             .kind = ModelKind::kPolynomial,
             .a = "h",
             .polynomial = {PolynomialBasis::kChebyshev, {0.5, 0.25, -0.125}, -3, 2}});
  model.Linear("y", "p", 2);
  model.Output("y");
  EXPECT_EQ(CircuitDepth(LoweredAndCompared(model)), 3);
}

TEST(ModelLoweringTest, PolynomialsBetweenLayersHaveTheLeastDepth) {
  const int least[] = {0, 0, 1, 2, 2, 3, 3, 3, 3, 4};
  for (int degree = 3; degree <= 9; ++degree) {
    for (PolynomialBasis basis : {PolynomialBasis::kPower, PolynomialBasis::kChebyshev}) {
      SCOPED_TRACE(degree);
      RandomModel model(degree);
      model.Input("x", {6});
      model.Linear("h", "x", 6);
      Polynomial polynomial = RandomPolynomial(basis, degree, -3, 2, model.random());
      if (basis == PolynomialBasis::kChebyshev) polynomial.coefficients.back() = 0.5;
      model.Add({.name = "p", .kind = ModelKind::kPolynomial, .a = "h", .polynomial = polynomial});
      model.Linear("y", "p", 2);
      model.Output("y");
      const Circuit circuit = LoweredAndCompared(model);
      if (basis == PolynomialBasis::kChebyshev) {
        // The factor of the highest power is part of the layer behind.
        EXPECT_EQ(CircuitDepth(circuit), 2 + least[degree]);
      } else {
        EXPECT_LE(CircuitDepth(circuit), 3 + least[degree]);
      }
    }
  }
}

TEST(ModelLoweringTest, PositionsWithoutElementsStayWithinTheRangesOfPolynomials) {
  RandomModel model(12);
  model.Input("x", {5});
  model.model().inputs[0].lower = 0.5;
  std::string edge = "x";
  for (int i = 0; i < 3; ++i) {
    // From [0.5, 1] to [1, 2.2], and 0 to 5; and back, 5 to 40. A third time it would be 10^9.
    const std::string there = absl::StrCat("there", i), back = absl::StrCat("back", i);
    model.Add({.name = there,
               .kind = ModelKind::kPolynomial,
               .a = edge,
               .polynomial = {PolynomialBasis::kPower, {5, -8, 4, 0.1}, 0.5, 1}});
    model.Add({.name = back,
               .kind = ModelKind::kPolynomial,
               .a = there,
               .polynomial = {PolynomialBasis::kChebyshev, {0.75, 0.1, 0.05, 0.05}, 1, 2.2}});
    edge = back;
  }
  model.Output(edge);
  const Circuit circuit = LoweredAndCompared(model);
  ASSERT_OK_AND_ASSIGN(const NamedNumbers edges,
                       EvaluateCircuitEdges(circuit, {{"x", std::vector<double>(5, 0.5)}}));
  for (const auto& [name, numbers] : edges) {
    for (double number : numbers) EXPECT_LT(std::abs(number), 50) << name;
  }
}

TEST(ModelLoweringTest, RandomNetworks) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomModel model = RandomNetwork(seed);
    // Bounds of chains of squares explode; those over samples need no margin over the same.
    LoweringOptions options;
    std::mt19937 random = model.random();
    const TensorBatch samples = model.Samples(3);
    model.random() = random;
    ASSERT_OK_AND_ASSIGN(options.magnitudes, MeasureMagnitudes(model.model(), samples, 1));
    LoweredAndCompared(model, options);
  }
}

TEST(ModelLoweringTest, PositionCountIsWithinItsLimits) {
  RandomModel model(1);
  model.Input("x", {13});
  model.Linear("y", "x", 3);
  model.Output("y");
  EXPECT_EQ(LoweredAndCompared(model).position_count, 16);
  EXPECT_EQ(LoweredAndCompared(model, {.least_position_count = 64}).position_count, 64);
  EXPECT_THAT(LowerModel(model.model(), {.most_position_count = 8}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("edge 'x': expected at most 8 numbers")));
  EXPECT_THAT(LowerModel(model.model(), {.least_position_count = 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("least_position_count: expected a power of two")));
  EXPECT_THAT(LowerModel(model.model(), {.magnitudes = {{"x", 1.0}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("edge 'y'")));
}

}  // namespace
}  // namespace cipherd::planning
