#include "server/engine/byte_budget.h"

#include <utility>

#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

TEST(ByteBudgetTest, ChargesAreWholeOrNotAtAllAndComeBack) {
  ByteBudget budget("test", 100);
  {
    ASSERT_OK_AND_ASSIGN(const ByteBudget::Charge charge, budget.Reserve(60));
    EXPECT_EQ(ReasonOf(budget.Reserve(41).status()), FailureReason::kOverloaded);
    EXPECT_EQ(ReasonOf(budget.Reserve(101).status()), FailureReason::kLimitExceeded);
    EXPECT_EQ(budget.used_bytes(), 60);
  }
  EXPECT_EQ(budget.used_bytes(), 0);
}

TEST(ByteBudgetTest, AChargeShrinksAndNeverGrows) {
  ByteBudget budget("test", 100);
  ASSERT_OK_AND_ASSIGN(ByteBudget::Charge charge, budget.Reserve(60));
  charge.ShrinkTo(20);
  EXPECT_EQ(charge.bytes(), 20);
  EXPECT_EQ(budget.used_bytes(), 20);
  charge.ShrinkTo(50);
  EXPECT_EQ(budget.used_bytes(), 20);
  EXPECT_OK(budget.Reserve(80));
  ByteBudget::Charge moved = std::move(charge);
  moved.Release();
  EXPECT_EQ(budget.used_bytes(), 0);
  moved.ShrinkTo(0);
  EXPECT_EQ(budget.used_bytes(), 0);
}

}  // namespace
}  // namespace cipherd::engine
