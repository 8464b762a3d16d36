#include "core/planning/context_choice.h"

#include <algorithm>
#include <cmath>

#include "core/planning/placement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ContextChoiceTest, TheLeastDegreeIsTakenThatIsSecure) {
  for (int depth : {0, 1, 2, 4, 6, 9, 14, 20}) {
    SCOPED_TRACE(depth);
    const ContextNeeds needs = {.depth = depth, .log2_scale = 40, .base_prime_bits = 48};
    ASSERT_OK_AND_ASSIGN(const ckks::ContextParameters context, ChooseContext(needs));
    EXPECT_OK(context.Validate(ckks::SecurityPolicy::k128BitClassical));
    EXPECT_EQ(context.max_depth(), depth);
    // Q and the smallest P do not fit one degree less.
    const double least = 48 + depth * 40 + 40;
    if (context.log_n > 12) {
      EXPECT_GT(least + 10, ckks::MaxSecureLogQp(context.log_n - 1));
    }
  }
}

TEST(ContextChoiceTest, SlotsAreAtLeastThoseAskedFor) {
  ASSERT_OK_AND_ASSIGN(
      const ckks::ContextParameters context,
      ChooseContext({.depth = 1, .slot_count = 5000, .log2_scale = 30, .base_prime_bits = 35}));
  EXPECT_EQ(context.log_n, 14);
}

TEST(ContextChoiceTest, ScalesHardlyDriftOverManyDepths) {
  ASSERT_OK_AND_ASSIGN(
      const ckks::ContextParameters context,
      ChooseContext({.depth = 25, .log2_scale = 40, .base_prime_bits = 48, .max_log_n = 16}));
  for (const double scale : CanonicalScales(context)) {
    EXPECT_NEAR(std::log2(scale), 40, 1e-3);
  }
}

TEST(ContextChoiceTest, EveryDigitIsAtMostHalfOfP) {
  for (int depth = 0; depth < 20; ++depth) {
    ASSERT_OK_AND_ASSIGN(const ckks::ContextParameters context,
                         ChooseContext({.depth = depth, .log2_scale = 35, .base_prime_bits = 50}));
    EXPECT_LE(Log2DigitOverP(context), -0.9) << depth;
  }
}

TEST(ContextChoiceTest, ALargeModulusLeavesRoomForDigitsOfSeveralPrimes) {
  // 2^15 holds 868 bits: 13 depths of 40 bits leave enough for more than one prime of P.
  ASSERT_OK_AND_ASSIGN(const ckks::ContextParameters context,
                       ChooseContext({.depth = 13, .log2_scale = 40, .base_prime_bits = 49}));
  EXPECT_EQ(context.log_n, 15);
  EXPECT_GE(context.p_count(), 3);
  EXPECT_LE(context.digits.size(), 5u);
}

TEST(ContextChoiceTest, PrimesBelowTwoToTheFiftyStayThere) {
  // What kernels compute with doubles.
  ASSERT_OK_AND_ASSIGN(const ckks::ContextParameters context,
                       ChooseContext({.depth = 6, .log2_scale = 42, .base_prime_bits = 49}));
  for (const uint64_t q : context.q_primes) EXPECT_LT(q, uint64_t{1} << 50);
  for (const uint64_t p : context.p_primes) EXPECT_LT(p, uint64_t{1} << 50);
}

TEST(ContextChoiceTest, NeedsOutOfRangeAreRefusedByName) {
  EXPECT_THAT(ChooseContext({.depth = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("depth: expected 0 to")));
  EXPECT_THAT(ChooseContext({.log2_scale = 50, .base_prime_bits = 50}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("base_prime_bits: expected above log2_scale, 50")));
  EXPECT_THAT(ChooseContext({.min_log_n = 11}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("log_n: expected a range")));
  EXPECT_THAT(
      ChooseContext({.depth = 30, .log2_scale = 55, .base_prime_bits = 60, .max_log_n = 15}),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("30 depths of 55 bits, got none that is secure")));
}

}  // namespace
}  // namespace cipherd::planning
