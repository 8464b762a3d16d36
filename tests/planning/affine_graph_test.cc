#include "core/planning/affine_graph.h"

#include <algorithm>
#include <string>

#include "core/planning/model_check.h"
#include "gtest/gtest.h"
#include "tests/planning/random_model.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

AffineGraph GraphOf(RandomModel& model) {
  const absl::StatusOr<ModelShapes> shapes = CheckModel(model.model());
  EXPECT_OK(shapes);
  absl::StatusOr<AffineGraph> graph = BuildAffineGraph(model.model(), *shapes, /*apart=*/{});
  EXPECT_OK(graph);
  return *std::move(graph);
}

int CountOf(const AffineGraph& graph, NodeKind kind) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [=](const AffineNode& node) { return node.kind == kind; }));
}

TEST(AffineGraphTest, LinearOperationsInARowAreOneNode) {
  RandomModel model(1);
  model.Input("x", {1, 12, 12});
  model.WithConstant(ModelKind::kMultiplyConstant, "scaled", "x", {1});
  model.Conv("c", "scaled", {2, 1, 3, 3}, {.strides = {2, 2}});
  model.WithConstant(ModelKind::kMultiplyConstant, "norm", "c", {2, 1, 1});
  model.WithConstant(ModelKind::kAddConstant, "shifted", "norm", {2, 1, 1});
  model.Square("s", "shifted");
  model.Pool("p", "s", {2, 2}, {.strides = {2, 2}});
  model.Add({.name = "flat", .kind = ModelKind::kReshape, .a = "p", .shape = {-1}});
  model.Linear("y", "flat", 3);
  model.Output("y");
  const AffineGraph graph = GraphOf(model);
  ASSERT_EQ(graph.nodes.size(), 4u);
  EXPECT_EQ(graph.nodes[1].name, "shifted");
  EXPECT_EQ(graph.nodes[1].form.strides, (std::array<int64_t, 2>{2, 2}));
  EXPECT_EQ(graph.nodes[3].name, "y");
  EXPECT_EQ(graph.outputs, (std::vector<int>{3}));
}

TEST(AffineGraphTest, LayersStayApartWhereTheirProductCostsMore) {
  RandomModel model(1);
  // As one matrix it would be dense, 1000 · 1000.
  model.Input("x", {1000});
  model.Linear("narrow", "x", 2);
  model.Linear("wide", "narrow", 1000);
  model.Square("s", "wide");
  model.Output("s");
  EXPECT_EQ(CountOf(GraphOf(model), NodeKind::kAffine), 2);
}

TEST(AffineGraphTest, ALayerThatSeveralReadIsMadeOnce) {
  RandomModel model(1);
  model.Input("x", {8});
  model.Linear("h", "x", 8);
  model.Linear("f", "h", 8);
  model.Linear("g", "h", 8);
  model.Binary(ModelKind::kMultiply, "y", "f", "g");
  model.Output("y");
  EXPECT_EQ(CountOf(GraphOf(model), NodeKind::kAffine), 3);
}

TEST(AffineGraphTest, SumsOfOneNodeAreOneMatrix) {
  RandomModel model(1);
  model.Input("x", {8});
  model.Linear("f", "x", 8);
  model.Binary(ModelKind::kAdd, "sum", "f", "x");
  model.Binary(ModelKind::kSubtract, "y", "sum", "x");
  model.Output("y");
  const AffineGraph graph = GraphOf(model);
  ASSERT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(graph.nodes[1].form.terms.size(), 1u);
}

TEST(AffineGraphTest, AnImageIsOneUnderAnyOfItsShapes) {
  RandomModel model(1);
  model.Input("x", {36});
  model.Add({.name = "image", .kind = ModelKind::kReshape, .a = "x", .shape = {1, 6, 6}});
  model.Conv("y", "image", {1, 1, 3, 3}, {});
  model.Output("y");
  const AffineGraph graph = GraphOf(model);
  EXPECT_EQ(graph.nodes[0].shape, (Shape{1, 6, 6}));
}

TEST(AffineGraphTest, KnowsWhatStandsBesideElements) {
  RandomModel model(1);
  model.Input("x", {5});
  // 2 beside elements, which is outside the range of the next one.
  model.Add({.name = "p",
             .kind = ModelKind::kPolynomial,
             .a = "x",
             .polynomial = {PolynomialBasis::kPower, {2, -1, 0, -0.5}, -1, 1}});
  model.Square("s", "p");
  model.Add({.name = "q",
             .kind = ModelKind::kPolynomial,
             .a = "s",
             .polynomial = {PolynomialBasis::kPower, {0.25, 1, 0, 0.5}, -1, 1}});
  model.Output("q");
  const AffineGraph graph = GraphOf(model);
  ASSERT_EQ(graph.nodes.size(), 5u);
  EXPECT_EQ(graph.nodes[1].elsewhere.upper, 2);
  EXPECT_EQ(graph.nodes[2].elsewhere.upper, 4);
  EXPECT_TRUE(graph.nodes[3].is_masked);
  EXPECT_EQ(graph.nodes[3].elsewhere.magnitude(), 0);
  EXPECT_EQ(graph.nodes[4].elsewhere.upper, 0.25);
}

}  // namespace
}  // namespace cipherd::planning
