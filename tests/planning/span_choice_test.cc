#include "core/planning/span_choice.h"

#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/ckks/bsgs_plan.h"
#include "gtest/gtest.h"
#include "tests/planning/plan_circuits.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

// Transforms of the given offsets one after another, over 64 positions.
Circuit Chain(const std::vector<std::vector<int64_t>>& offsets) {
  CircuitBuilder builder("chain", 64);
  std::string edge = builder.Input("x", 64);
  for (const std::vector<int64_t>& of_one : offsets) {
    edge = builder.LinearTransform(edge, RandomNumbers(of_one.size() * 64, of_one.size()), of_one);
  }
  builder.Output({.name = "y", .edge = edge, .element_count = 64});
  return std::move(builder).Build();
}

std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

struct Choice {
  std::set<int64_t> steps;
  int64_t cost = 0;
};

Choice ChoiceOf(const Circuit& circuit, const BabySpans& spans) {
  Choice choice;
  for (const CircuitOperation& operation : circuit.operations) {
    const value::Tensor& offsets = circuit.constants.find(operation.offsets)->second;
    const int64_t* begin = offsets.data_as<const int64_t>();
    const auto span = spans.find(operation.name);
    const ckks::BsgsPlan plan =
        *ckks::BsgsPlan::Make({begin, begin + offsets.element_count()}, circuit.position_count,
                              span == spans.end() ? 0 : span->second);
    const std::vector<int64_t> babies = plan.BabySteps();
    const std::vector<int64_t> giants = plan.GiantSteps();
    choice.steps.insert(babies.begin(), babies.end());
    choice.steps.insert(giants.begin(), giants.end());
    choice.cost +=
        static_cast<int64_t>(babies.size() + ckks::BsgsPlan::kGiantStepCost * giants.size());
  }
  return choice;
}

TEST(SpanChoiceTest, TransformsOfTheSameOffsetsAreSplitAlike) {
  const Circuit circuit = Chain({UpTo(30), UpTo(12), UpTo(30), UpTo(30)});
  const BabySpans spans = ChooseSpans(circuit);
  const auto span_of = [&](size_t i) { return spans.at(circuit.operations[i].name); };
  EXPECT_EQ(span_of(0), span_of(2));
  EXPECT_EQ(span_of(0), span_of(3));
}

TEST(SpanChoiceTest, TransformsShareRotationsWhereThatCostsLittle) {
  const Circuit circuit = Chain({UpTo(64), UpTo(30), UpTo(12)});
  const Choice alone = ChoiceOf(circuit, {});
  const Choice together = ChoiceOf(circuit, ChooseSpans(circuit));
  EXPECT_LT(together.steps.size(), alone.steps.size());
  EXPECT_LE(static_cast<double>(together.cost), (1 + kSpanSlack) * static_cast<double>(alone.cost));
}

TEST(SpanChoiceTest, OneTransformAloneTakesTheFewestRotationsOfThoseThatAreFast) {
  const Circuit circuit = Chain({UpTo(64)});
  const Choice alone = ChoiceOf(circuit, {});
  const Choice chosen = ChoiceOf(circuit, ChooseSpans(circuit));
  EXPECT_LE(chosen.steps.size(), alone.steps.size());
  EXPECT_LE(static_cast<double>(chosen.cost), (1 + kSpanSlack) * static_cast<double>(alone.cost));
}

TEST(SpanChoiceTest, EveryTransformHasASpan) {
  const Circuit circuit = Chain({{0}, {5}, {1, 63}});
  EXPECT_EQ(ChooseSpans(circuit).size(), 3u);
}

}  // namespace
}  // namespace cipherd::planning
