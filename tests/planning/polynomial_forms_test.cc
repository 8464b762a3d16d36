#include "core/planning/polynomial_forms.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace cipherd::planning {
namespace {

Polynomial Random(PolynomialBasis basis, int degree, double lower, double upper,
                  std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  Polynomial polynomial = {basis, {}, lower, upper};
  for (int k = 0; k <= degree; ++k) polynomial.coefficients.push_back(uniform(random));
  return polynomial;
}

constexpr std::pair<double, double> kRanges[] = {{-1, 1}, {-6, 5}, {2, 3}, {-0.25, 0.5}};

TEST(PolynomialFormsTest, NormalisedIsTheSameOfAnotherArgument) {
  std::mt19937 random(1);
  for (PolynomialBasis basis : {PolynomialBasis::kPower, PolynomialBasis::kChebyshev}) {
    for (const auto& [lower, upper] : kRanges) {
      for (bool is_scale_free : {false, true}) {
        const Polynomial polynomial = Random(basis, 5, lower, upper, random);
        const NormalisedPolynomial form = Normalise(polynomial, is_scale_free);
        for (int i = 0; i <= 10; ++i) {
          const double x = lower + (upper - lower) * i / 10;
          const double t = form.scale * x + form.shift;
          const double y = Evaluate(polynomial, x);
          EXPECT_NEAR(Evaluate(form.polynomial, t), y, 1e-13 * (1 + std::abs(y)));
          EXPECT_GE(t, form.polynomial.lower - 1e-15);
          EXPECT_LE(t, form.polynomial.upper + 1e-15);
          EXPECT_TRUE(form.lawful_argument.Contains(t * (1 - 1e-15)));
          if (is_scale_free) {
            EXPECT_LE(std::abs(t), 1 + 1e-15);
          }
        }
        if (basis == PolynomialBasis::kPower && !is_scale_free) {
          EXPECT_EQ(form.scale, 1);
        }
      }
    }
  }
}

TEST(PolynomialFormsTest, ScaleOfThePowerBasisRoundsNothing) {
  const Polynomial polynomial = {PolynomialBasis::kPower, {0.1, 0.2, 0.3}, -5, 3};
  const NormalisedPolynomial form = Normalise(polynomial, /*is_scale_free=*/true);
  EXPECT_EQ(form.scale, 0.125);
  EXPECT_EQ(form.polynomial.coefficients, (std::vector<double>{0.1, 0.2 * 8, 0.3 * 64}));
}

TEST(PolynomialFormsTest, CompletedSquareIsTheSame) {
  std::mt19937 random(2);
  int completed_count = 0;
  for (int round = 0; round < 100; ++round) {
    const auto [lower, upper] = kRanges[round % 4];
    const auto basis = round % 8 < 4 ? PolynomialBasis::kPower : PolynomialBasis::kChebyshev;
    const Polynomial polynomial = Random(basis, 2, lower, upper, random);
    const auto square = CompleteSquare(polynomial);
    if (!square.has_value()) continue;
    ++completed_count;
    for (int i = 0; i <= 10; ++i) {
      const double x = lower + (upper - lower) * i / 10;
      const double argument = x + square->shift;
      EXPECT_NEAR(square->factor * argument * argument + square->rest, Evaluate(polynomial, x),
                  1e-12);
      EXPECT_LE(std::abs(argument), 4.001 * (upper - lower));
    }
  }
  EXPECT_GT(completed_count, 50);
  // Nearly a line: its square would be of numbers 500 times as large.
  EXPECT_FALSE(CompleteSquare({PolynomialBasis::kPower, {0, 1, 0.001}, -1, 1}).has_value());
}

TEST(PolynomialFormsTest, LeadingFactorIsTakenWhereItSavesADepth) {
  Polynomial quartic = {PolynomialBasis::kChebyshev, {1, 2, 0, 1, 0.25}, -1, 1};
  EXPECT_EQ(TakeLeadingFactor(quartic), 0.25);
  EXPECT_EQ(quartic.coefficients, (std::vector<double>{4, 8, 0, 4, 1}));
  Polynomial quintic = {PolynomialBasis::kChebyshev, {1, 2, 0, 1, 0, 0.25}, -1, 1};
  EXPECT_EQ(TakeLeadingFactor(quintic), 1);
  Polynomial steep = {PolynomialBasis::kChebyshev, {1, 2, 0, 1, 0.01}, -1, 1};
  EXPECT_EQ(TakeLeadingFactor(steep), 1);
  EXPECT_EQ(steep.coefficients.back(), 0.01);
}

TEST(PolynomialFormsTest, ZerosBehindTheLastCoefficientGo) {
  const Polynomial zeros = {PolynomialBasis::kPower, {0, 0, 0}, -1, 1};
  EXPECT_EQ(Trimmed(zeros).coefficients, (std::vector<double>{0}));
  const Polynomial line = {PolynomialBasis::kPower, {0, 1, 0, 0}, -1, 1};
  EXPECT_EQ(Trimmed(line).coefficients, (std::vector<double>{0, 1}));
}

}  // namespace
}  // namespace cipherd::planning
