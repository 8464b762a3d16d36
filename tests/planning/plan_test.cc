#include "core/planning/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/status_macros.h"
#include "core/planning/context_choice.h"
#include "core/planning/edge_magnitudes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planning/plan_circuits.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::cipherd::testing::StatusIs;
using programs::Operation;
using programs::OperationKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Plan> PlanOf(const Circuit& circuit, const PlanOptions& options = {}) {
  CIPHERD_ASSIGN_OR_RETURN(const EdgeMagnitudes magnitudes,
                           MeasureMagnitudes(circuit, RandomSamples(circuit, 30, 7)));
  return MakePlan(circuit, magnitudes, options);
}

std::map<OperationKind, int> CountKinds(const programs::ProgramSpec& spec) {
  std::map<OperationKind, int> counts;
  for (const Operation& operation : spec.operations) ++counts[operation.kind];
  return counts;
}

TEST(PlanTest, ANetworkGetsOneRescaleForEachProductAndNothingElse) {
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(SmallNetwork()));
  const programs::ProgramSpec& spec = plan.program->spec;
  EXPECT_EQ(spec.context.max_depth(), 3);
  const auto counts = CountKinds(spec);
  EXPECT_EQ(counts.at(OperationKind::kLinearTransform), 2);
  EXPECT_EQ(counts.at(OperationKind::kSquare), 1);
  EXPECT_EQ(counts.at(OperationKind::kRelinearize), 1);
  EXPECT_EQ(counts.at(OperationKind::kRescale), 3);
  EXPECT_EQ(counts.at(OperationKind::kAddPlain), 2);
  EXPECT_EQ(spec.operations.size(), 9u);
  EXPECT_EQ(plan.program->edges.at("scores").depth, 3);
}

TEST(PlanTest, ItemsLieSideBySideInAllSlots) {
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(SmallNetwork()));
  const programs::ProgramSpec& spec = plan.program->spec;
  const int64_t items = spec.context.slot_count() / 16;
  EXPECT_EQ(plan.item_count, items);
  EXPECT_EQ(spec.inputs[0].layout, (programs::SlotLayout{items, 1, 10, items}));
  EXPECT_EQ(spec.outputs[0].layout, (programs::SlotLayout{items, 1, 4, 2 * items}));
}

TEST(PlanTest, TheBasePrimeIsAsLargeAsTheContextHoldsForNothing) {
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(SmallNetwork()));
  const ckks::ContextParameters& context = plan.program->spec.context;
  const int bits = std::bit_width(context.q_primes.back());
  ContextNeeds needs = {.depth = context.max_depth(),
                        .slot_count = 16,
                        .log2_scale = static_cast<int>(std::log2(context.default_scale)),
                        .base_prime_bits = bits};
  ASSERT_OK_AND_ASSIGN(const ckks::ContextParameters chosen, ChooseContext(needs));
  EXPECT_EQ(chosen, context);
  // Outputs of a magnitude of 4 need 4 bits beyond the scale.
  needs.base_prime_bits = needs.log2_scale + 4;
  ASSERT_OK_AND_ASSIGN(const ckks::ContextParameters least, ChooseContext(needs));
  EXPECT_EQ(least.log_n, context.log_n);
  EXPECT_EQ(least.digits, context.digits);
  EXPECT_GT(bits, needs.base_prime_bits);
  // One bit more would cost something, or leave the faster arithmetic.
  if (bits == 49) return;
  needs.base_prime_bits = bits + 1;
  const absl::StatusOr<ckks::ContextParameters> larger = ChooseContext(needs);
  EXPECT_TRUE(!larger.ok() || larger->log_n > context.log_n || larger->digits != context.digits);
}

TEST(PlanTest, EveryEdgeOfADepthHasOneScale) {
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(ManyDepths()));
  std::map<int, std::set<double>> scales;
  for (const auto& [name, state] : plan.program->edges) {
    // Products and what is dropped without a rescale have others.
    if (name.find("_unscaled") != std::string::npos ||
        name.find("_relinearized") != std::string::npos ||
        name.find("_dropped_") != std::string::npos) {
      continue;
    }
    scales[state.depth].insert(state.scale);
  }
  for (const auto& [depth, of_depth] : scales) EXPECT_EQ(of_depth.size(), 1u) << depth;
  EXPECT_GE(scales.size(), 3u);
}

TEST(PlanTest, InputsHaveTheDepthAtWhichTheyAreFirstRead) {
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(ManyDepths()));
  // x^8 takes three depths; y is first read where x^4 is; `late` is only added at the end.
  EXPECT_EQ(plan.program->spec.context.max_depth(), 3);
  EXPECT_EQ(plan.program->edges.at("x").depth, 0);
  EXPECT_EQ(plan.program->edges.at("y").depth, 2);
  EXPECT_EQ(plan.program->edges.at("late").depth, 3);
}

TEST(PlanTest, OutputsHaveTheLastDepth) {
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(ManyDepths()));
  for (const programs::ProgramOutput& output : plan.program->spec.outputs) {
    EXPECT_EQ(plan.program->edges.find(output.edge)->second.depth, 3) << output.name;
  }
}

TEST(PlanTest, AnOutputIsFinishedBeforeTheNextOneIsBegun) {
  CircuitBuilder builder("blocks", 8);
  const std::string x = builder.Input("x", 8);
  const std::vector<int64_t> offsets = {0, 1};
  for (const std::string name : {"first", "second", "third"}) {
    builder.Output({.name = name,
                    .edge = builder.LinearTransform(x, RandomNumbers(16, 5), offsets, name),
                    .element_count = 8,
                    .magnitude_bound = 4});
  }
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(std::move(builder).Build()));
  std::vector<OperationKind> kinds;
  for (const Operation& operation : plan.program->spec.operations) kinds.push_back(operation.kind);
  EXPECT_THAT(kinds, ElementsAre(OperationKind::kLinearTransform, OperationKind::kRescale,
                                 OperationKind::kLinearTransform, OperationKind::kRescale,
                                 OperationKind::kLinearTransform, OperationKind::kRescale));
}

TEST(PlanTest, ASumOfProductsIsRelinearizedAndRescaledOnce) {
  CircuitBuilder builder("dot", 4);
  const std::string x = builder.Input("x", 4);
  const std::string y = builder.Input("y", 4);
  const std::string products =
      builder.Add(builder.Add(builder.Multiply(x, y), builder.Square(x)), builder.Square(y));
  builder.Output({.name = "dot",
                  .edge = builder.AddPlain(builder.MultiplyPlain(products, 0.5), 1),
                  .element_count = 4,
                  .magnitude_bound = 8});
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(std::move(builder).Build()));
  const auto counts = CountKinds(plan.program->spec);
  EXPECT_EQ(counts.at(OperationKind::kRelinearize), 1);
  EXPECT_EQ(counts.at(OperationKind::kRescale), 2);
}

TEST(PlanTest, RotationKeysAreThoseOfTheCircuitInSlots) {
  CircuitBuilder builder("turn", 8);
  const std::string x = builder.Input("x", 8);
  builder.Output({.name = "y",
                  .edge = builder.Add(builder.Rotate(x, 3), builder.Rotate(x, -1)),
                  .element_count = 8,
                  .magnitude_bound = 4});
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(std::move(builder).Build()));
  const int64_t slots = plan.program->spec.context.slot_count();
  const int64_t items = plan.item_count;
  EXPECT_THAT(plan.program->keys.ids(), ElementsAre(ckks::KeyId::Rotation(3 * items, slots),
                                                    ckks::KeyId::Rotation(7 * items, slots)));
}

TEST(PlanTest, MorePrecisionTakesALargerScaleAndIsEstimatedSmaller) {
  ASSERT_OK_AND_ASSIGN(const Plan coarse, PlanOf(SmallNetwork(), {.max_error = 1e-2}));
  ASSERT_OK_AND_ASSIGN(const Plan fine, PlanOf(SmallNetwork(), {.max_error = 1e-7}));
  EXPECT_LT(coarse.program->spec.context.default_scale, fine.program->spec.context.default_scale);
  EXPECT_LE(coarse.estimated_error, 1e-2);
  EXPECT_LE(fine.estimated_error, 1e-7);
  EXPECT_LE(coarse.program->spec.context.log_n, fine.program->spec.context.log_n);
}

TEST(PlanTest, AsManyItemsAsAreAskedFor) {
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(SmallNetwork(), {.min_item_count = 1024}));
  EXPECT_GE(plan.item_count, 1024);
  EXPECT_EQ(plan.program->spec.context.log_n, 15);
}

TEST(PlanTest, APlanIsTheSameEveryTime) {
  ASSERT_OK_AND_ASSIGN(const Plan a, PlanOf(ManyDepths()));
  ASSERT_OK_AND_ASSIGN(const Plan b, PlanOf(ManyDepths()));
  EXPECT_EQ(a.program->context->id(), b.program->context->id());
  ASSERT_EQ(a.program->spec.operations.size(), b.program->spec.operations.size());
  for (size_t i = 0; i < a.program->spec.operations.size(); ++i) {
    EXPECT_EQ(a.program->spec.operations[i].name, b.program->spec.operations[i].name);
  }
}

TEST(PlanTest, ABasePrimeHoldsTheOutputsBound) {
  Circuit circuit = SmallNetwork();
  circuit.outputs[0].magnitude_bound = 1000;
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(circuit));
  const ckks::ContextParameters& context = plan.program->spec.context;
  EXPECT_GE(std::log2(static_cast<double>(context.q_primes.back())),
            std::log2(context.default_scale) + 11);
}

TEST(PlanTest, EdgesWhoseLongNamesWouldMeetGetOthers) {
  CircuitBuilder builder("names", 4);
  const std::string x = builder.Input("x", 4);
  const std::string long_a(64, 'a');
  const std::string a = builder.MultiplyPlain(x, 0.5, long_a);
  const std::string b = builder.MultiplyPlain(a, 0.5, long_a);
  const std::string clash = builder.MultiplyPlain(b, 0.5, "c");
  const std::string other = builder.Negate(clash, "c_unscaled");
  builder.Output(
      {.name = "y", .edge = builder.Add(other, x), .element_count = 4, .magnitude_bound = 2});
  ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(std::move(builder).Build()));
  EXPECT_EQ(plan.program->spec.context.max_depth(), 3);
}

TEST(PlanTest, PrecisionBeyondEveryPrimeIsRefusedWithWhatCanBeHad) {
  EXPECT_THAT(
      PlanOf(SmallNetwork(), {.max_error = 1e-16}),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_error: expected at least ")));
}

TEST(PlanTest, ACircuitTooDeepForEveryDegreeIsRefused) {
  CircuitBuilder builder("deep", 4);
  std::string edge = builder.Input("x", 4);
  for (int i = 0; i < 60; ++i) edge = builder.Square(edge);
  builder.Output({.name = "y", .edge = edge, .element_count = 4});
  EXPECT_THAT(PlanOf(std::move(builder).Build()),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("60 depths of ")));
}

TEST(PlanTest, OptionsOutOfRangeAreRefused) {
  EXPECT_THAT(PlanOf(SmallNetwork(), {.max_error = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_error")));
  EXPECT_THAT(PlanOf(SmallNetwork(), {.max_error = std::nan("")}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_error")));
  EXPECT_THAT(PlanOf(SmallNetwork(), {.max_log_n = 18}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("log_n")));
  EXPECT_THAT(PlanOf(SmallNetwork(), {.min_item_count = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("min_item_count")));
  EXPECT_THAT(PlanOf(SmallNetwork(), {.log2_scale = 59}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("base_prime_bits")));
}

}  // namespace
}  // namespace cipherd::planning
