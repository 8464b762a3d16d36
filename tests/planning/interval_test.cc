#include "core/planning/interval.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "gtest/gtest.h"

namespace cipherd::planning {
namespace {

TEST(IntervalTest, PolynomialsReachWhatTheyReachAndLittleMore) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int degree = 0; degree < 20; ++degree) {
    Polynomial polynomial = {PolynomialBasis::kChebyshev, {}, -1, 2};
    for (int k = 0; k <= degree; ++k) polynomial.coefficients.push_back(uniform(random));
    const Interval x(-0.7, 1.9);
    const Interval range = Evaluate(polynomial, x);
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i <= 10000; ++i) {
      const double y = Evaluate(polynomial, x.lower + (x.upper - x.lower) * i / 10000);
      least = std::min(least, y);
      most = std::max(most, y);
    }
    EXPECT_LE(range.lower, least);
    EXPECT_GE(range.upper, most);
    EXPECT_LE(range.upper - range.lower, (most - least) * 1.02 + 1e-12);
    // Cut off at the range that it is meant for.
    const Interval whole = Evaluate(polynomial, Interval(-1, 2));
    const Interval beyond = Evaluate(polynomial, Interval(-100, 100));
    EXPECT_EQ(beyond.lower, whole.lower);
    EXPECT_EQ(beyond.upper, whole.upper);
  }
}

TEST(IntervalTest, ArithmeticKeepsOrder) {
  const Interval a(-1, 2), b(3, 4);
  EXPECT_EQ((a + b).lower, 2);
  EXPECT_EQ((a - b).lower, -5);
  EXPECT_EQ((a - b).upper, -1);
  EXPECT_EQ((a * b).lower, -4);
  EXPECT_EQ((a * b).upper, 8);
  EXPECT_EQ((a * -3.0).lower, -6);
  EXPECT_EQ((a * -3.0).upper, 3);
  EXPECT_EQ(Square(a).lower, 0);
  EXPECT_EQ(Square(a).upper, 4);
  EXPECT_EQ(Square(Interval(-3, -2)).lower, 4);
}

}  // namespace
}  // namespace cipherd::planning
