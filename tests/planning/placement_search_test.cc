#include "core/planning/placement_search.h"

#include <string>

#include "core/planning/model_check.h"
#include "gtest/gtest.h"
#include "tests/planning/random_network.h"
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

TEST(PlacementSearchTest, PlacementsKeepTheirRules) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomModel model = RandomNetwork(seed);
    const AffineGraph graph = GraphOf(model);
    ASSERT_OK_AND_ASSIGN(const PackedGraph packed, PackGraph(graph, 256, 4096));
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const AffineNode& node = graph.nodes[i];
      const ElementPlacement& placement = packed.placements[i];
      EXPECT_EQ(static_cast<int64_t>(placement.positions.size()), node.element_count());
      EXPECT_LE(placement.period, packed.position_count);
      EXPECT_LE(placement.LeastPeriod(), placement.period);
      if (node.kind == NodeKind::kInput) {
        EXPECT_EQ(placement.Stride(), 1);
        EXPECT_EQ(placement.period, packed.position_count);
      }
      // What is combined position by position is placed alike.
      std::vector<int> alike = node.operands;
      ASSERT_EQ(packed.input_periods[i].size(), node.form.terms.size());
      for (size_t t = 0; t < node.form.terms.size(); ++t) {
        const AffineForm::Term& term = node.form.terms[t];
        if (term.matrix.IsDiagonal()) alike.push_back(term.node);
        // Only what is 0 elsewhere is brought to another period.
        const ElementPlacement& source = packed.placements[term.node];
        EXPECT_GE(packed.input_periods[i][t], graph.nodes[term.node].elsewhere.magnitude() == 0
                                                  ? source.LeastPeriod()
                                                  : source.period);
      }
      for (int other : alike) {
        EXPECT_EQ(packed.placements[other].positions, placement.positions);
        EXPECT_EQ(packed.placements[other].period, placement.period);
      }
    }
    for (int output : graph.outputs) EXPECT_GT(packed.placements[output].Stride(), 0);
  }
}

TEST(PlacementSearchTest, MorePositionsWhereTheyPayForThemselves) {
  // Compactly, 4 · 26 · 26 outputs fit into 4096 positions, but with hundreds of diagonals; on the
  // grid of the image they have 9 for each of four planes, which need them too.
  RandomModel model(1);
  model.Input("x", {1, 28, 28});
  model.Conv("c", "x", {4, 1, 3, 3}, {});
  model.Square("s", "c");
  model.Linear("y", "s", 10);
  model.Output("y");
  const AffineGraph graph = GraphOf(model);
  ASSERT_OK_AND_ASSIGN(const PackedGraph packed, PackGraph(graph, 2, 32768));
  EXPECT_EQ(packed.position_count, 4096);
  EXPECT_LT(packed.cost, 70);
  // With five channels there are none to spare.
  model.model().constants["c.w"] = TensorOf({5, 1, 3, 3}, std::vector<double>(45, 1.0));
  model.model().constants["c.b"] = TensorOf({5}, std::vector<double>(5, 1.0));
  model.model().constants["y.w"] = TensorOf({10, 3380}, std::vector<double>(33800, 1.0));
  const AffineGraph wider = GraphOf(model);
  ASSERT_OK_AND_ASSIGN(const PackedGraph tight, PackGraph(wider, 2, 4096));
  ASSERT_OK_AND_ASSIGN(const PackedGraph free, PackGraph(wider, 2, 32768));
  EXPECT_LE(free.cost * static_cast<double>(free.position_count),
            tight.cost * static_cast<double>(tight.position_count));
  EXPECT_EQ(tight.position_count, 4096);
}

TEST(PlacementSearchTest, EdgesLargerThanTheMostPositionsAreNamed) {
  RandomModel model(1);
  model.Input("x", {5});
  model.Linear("wide", "x", 100);
  model.Output("wide");
  EXPECT_THAT(PackGraph(GraphOf(model), 2, 64),
              ::cipherd::testing::StatusIs(
                  absl::StatusCode::kInvalidArgument,
                  ::testing::HasSubstr("edge 'wide': expected at most 64 numbers")));
}

}  // namespace
}  // namespace cipherd::planning
