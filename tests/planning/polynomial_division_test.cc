#include "core/planning/polynomial_division.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace cipherd::planning {
namespace {

constexpr PolynomialBasis kBases[] = {PolynomialBasis::kPower, PolynomialBasis::kChebyshev};

std::vector<double> RandomCoefficients(int degree, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> coefficients(degree + 1);
  for (double& coefficient : coefficients) coefficient = uniform(random);
  return coefficients;
}

double ElementAt(PolynomialBasis basis, int index, double x) {
  return basis == PolynomialBasis::kPower ? std::pow(x, index) : std::cos(index * std::acos(x));
}

TEST(PolynomialDivision, QuotientTimesDivisorAndRemainderAreThePolynomial) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const PolynomialBasis basis : kBases) {
    for (int degree = 0; degree <= 20; ++degree) {
      for (int divisor = 1; divisor <= degree + 2; ++divisor) {
        const std::vector<double> coefficients = RandomCoefficients(degree, random);
        const Division division = Divide(basis, coefficients, divisor);
        EXPECT_LE(static_cast<int>(division.remainder.size()), divisor);
        for (int sample = 0; sample < 5; ++sample) {
          const double x = uniform(random);
          const double quotient = Evaluate({basis, division.quotient}, x);
          const double remainder = Evaluate({basis, division.remainder}, x);
          // At most 21 coefficients, of a quotient below 2 · 21: a few hundred roundings.
          EXPECT_NEAR(quotient * ElementAt(basis, divisor, x) + remainder,
                      Evaluate({basis, coefficients}, x), 1e-12)
              << "degree " << degree << " by " << divisor;
        }
      }
    }
  }
}

TEST(PolynomialDivision, CoefficientsStaySmallBelowTwiceTheDivisor) {
  std::mt19937_64 random(2);
  for (int divisor = 1; divisor <= 32; ++divisor) {
    const Division division =
        Divide(PolynomialBasis::kChebyshev, RandomCoefficients(2 * divisor - 1, random), divisor);
    for (const double coefficient : division.quotient) EXPECT_LE(std::abs(coefficient), 2);
    for (const double coefficient : division.remainder) EXPECT_LE(std::abs(coefficient), 2);
  }
}

TEST(PolynomialDivision, TheSupportCoversWhatIsThere) {
  std::mt19937_64 random(3);
  for (const PolynomialBasis basis : kBases) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<double> coefficients = RandomCoefficients(random() % 64, random);
      IndexSet support;
      for (size_t i = 0; i < coefficients.size(); ++i) {
        if (random() % 3 != 0) coefficients[i] = 0;
        if (coefficients[i] != 0) support.Insert(static_cast<int>(i));
      }
      const int divisor = 1 + static_cast<int>(random() % 64);
      const Division division = Divide(basis, coefficients, divisor);
      const SupportDivision supports = Divide(basis, support, divisor);
      // Random coefficients do not cancel: the supports are exactly these.
      IndexSet quotient, remainder;
      for (size_t i = 0; i < division.quotient.size(); ++i) {
        if (division.quotient[i] != 0) quotient.Insert(static_cast<int>(i));
      }
      for (size_t i = 0; i < division.remainder.size(); ++i) {
        if (division.remainder[i] != 0) remainder.Insert(static_cast<int>(i));
      }
      EXPECT_EQ(supports.quotient, quotient);
      EXPECT_EQ(supports.remainder, remainder);
    }
  }
}

}  // namespace
}  // namespace cipherd::planning
