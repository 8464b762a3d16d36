// Polynomials as the planner places them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/planning/edge_magnitudes.h"
#include "core/planning/plan.h"
#include "core/planning/polynomial_circuit.h"
#include "gtest/gtest.h"
#include "tests/planning/plan_circuits.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

// Sums that have products of ciphertexts.
int ProductSumCount(const SplitSum& sum) {
  int count = sum.products.empty() ? 0 : 1;
  for (const SplitProduct& product : sum.products) count += ProductSumCount(product.quotient);
  return count;
}

int CountOf(const Plan& plan, programs::OperationKind kind) {
  const auto& operations = plan.program->spec.operations;
  return std::count_if(operations.begin(), operations.end(),
                       [kind](const auto& operation) { return operation.kind == kind; });
}

absl::StatusOr<Plan> PlanOf(const Polynomial& polynomial) {
  CircuitBuilder builder("polynomial", 16);
  const std::string x = builder.Input("x", 16);
  CIPHERD_ASSIGN_OR_RETURN(const std::string y, AppendPolynomial(builder, x, polynomial, "y"));
  builder.Output({.name = "y", .edge = y, .element_count = 16, .magnitude_bound = 64});
  const Circuit circuit = std::move(builder).Build();
  CIPHERD_ASSIGN_OR_RETURN(const EdgeMagnitudes magnitudes,
                           MeasureMagnitudes(circuit, RandomSamples(circuit, 10, 1)));
  return MakePlan(circuit, magnitudes, {.log2_scale = 40});
}

class PolynomialPlan : public ::testing::TestWithParam<int> {};

TEST_P(PolynomialPlan, EverySumIsRelinearizedOnceAtTheLeastDepth) {
  const int degree = GetParam();
  for (const PolynomialBasis basis : {PolynomialBasis::kPower, PolynomialBasis::kChebyshev}) {
    const Polynomial polynomial = {basis, RandomNumbers(degree + 1, degree)};
    const PolynomialSplit split = SplitPolynomial(basis, polynomial.coefficients);
    ASSERT_OK_AND_ASSIGN(const Plan plan, PlanOf(polynomial));
    EXPECT_EQ(plan.program->spec.context.max_depth(), split.depth);
    EXPECT_EQ(CountOf(plan, programs::OperationKind::kMultiply) +
                  CountOf(plan, programs::OperationKind::kSquare),
              split.multiplication_count);
    EXPECT_EQ(CountOf(plan, programs::OperationKind::kRelinearize),
              static_cast<int>(split.elements.size()) + ProductSumCount(split.sum));
  }
}

INSTANTIATE_TEST_SUITE_P(Degrees, PolynomialPlan, ::testing::Values(3, 7, 12, 15, 27, 31, 63));

}  // namespace
}  // namespace cipherd::planning
