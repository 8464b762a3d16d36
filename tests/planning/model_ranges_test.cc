#include "core/planning/model_ranges.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planning/random_model.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

TEST(ModelRangesTest, ArgumentsOutsideOfARangeAreCounted) {
  RandomModel model(1);
  model.Input("x", {3});
  const auto add = [&](const char* name, std::vector<double> coefficients, double reach) {
    model.Add(
        {.name = name,
         .kind = ModelKind::kPolynomial,
         .a = "x",
         .polynomial = {PolynomialBasis::kChebyshev, std::move(coefficients), -reach, reach}});
    model.Output(name);
  };
  add("narrow", {0, 1, 1}, 2);
  add("wide", {0, 1, 1}, 4);
  add("line", {0, 1, 0}, 1);
  const TensorBatch samples = {{"x", {{-3, 0.5, 1}, {2 + 1e-12, 2.5, -2}}}};
  ASSERT_OK_AND_ASSIGN(const TensorBatch values, EvaluateModel(model.model(), samples));
  const std::vector<RangeExcess> excesses = FindRangeExcesses(model.model(), values);
  ASSERT_EQ(excesses.size(), 1u);
  EXPECT_EQ(excesses[0].operation, "narrow");
  EXPECT_EQ(excesses[0].outside_count, 2);
  EXPECT_EQ(excesses[0].argument_count, 6);
  EXPECT_EQ(excesses[0].ToString(),
            "operation 'narrow': 2 of 6 arguments are outside [-2, 2], where the polynomial is "
            "fitted: they reach from -3 to 2.5; fit it over a larger range, or scale its argument");
}

}  // namespace
}  // namespace cipherd::planning
