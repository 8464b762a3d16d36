#include "core/planning/chebyshev_fit.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "core/planning/polynomial_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;
using Complex = std::complex<double>;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Relu(double x) { return std::max(x, 0.0); }

// What the interpolant of degree n at Chebyshev points of a function that is analytic within the
// Bernstein ellipse of `rho` is at most off: 4 M rho^-n / (rho - 1), M its largest magnitude there
// (Trefethen, theorem 8.2). The ellipse is walked in steps, whose gaps the factor 1.01 covers; the
// least bound over ellipses that end before the first pole, `pole` from the middle in units of half
// the interval, on the imaginary axis.
template <typename Function>
double AnalyticBound(const Function& function, double half_width, double pole, int degree) {
  double least = std::numeric_limits<double>::infinity();
  for (double part = 0.5; part < 0.99; part += 0.05) {
    // The ellipse whose half axis of imaginary numbers is part · pole.
    const double minor = part * pole;
    const double rho = minor + std::sqrt(minor * minor + 1);
    double largest = 0;
    for (int i = 0; i < 1000; ++i) {
      const Complex w = std::polar(rho, 2 * std::numbers::pi * i / 1000);
      largest = std::max(largest, std::abs(function(half_width * (w + 1.0 / w) / 2.0)));
    }
    least = std::min(least, 1.01 * 4 * largest * std::pow(rho, -degree) / (rho - 1));
  }
  return least;
}

TEST(ChebyshevFit, SigmoidIsWithinTheBoundOfAnalyticFunctions) {
  const auto complex_sigmoid = [](Complex z) { return 1.0 / (1.0 + std::exp(-z)); };
  for (const double half_width : {1.0, 4.0, 8.0}) {
    for (int degree = 1; degree <= 31; ++degree) {
      ASSERT_OK_AND_ASSIGN(const Polynomial fit,
                           ChebyshevFit(Sigmoid, -half_width, half_width, degree));
      // Poles at ±iπ.
      const double bound =
          AnalyticBound(complex_sigmoid, half_width, std::numbers::pi / half_width, degree);
      EXPECT_LE(LargestError(Sigmoid, fit), bound + 1e-14) << half_width << ", " << degree;
    }
  }
}

TEST(ChebyshevFit, TanhIsWithinTheBoundOfAnalyticFunctions) {
  const auto complex_tanh = [](Complex z) { return std::tanh(z); };
  const auto tanh = [](double x) { return std::tanh(x); };
  for (const double half_width : {1.0, 3.0, 5.0}) {
    for (int degree = 1; degree <= 63; ++degree) {
      ASSERT_OK_AND_ASSIGN(const Polynomial fit,
                           ChebyshevFit(tanh, -half_width, half_width, degree));
      // Poles at ±iπ/2.
      const double bound =
          AnalyticBound(complex_tanh, half_width, std::numbers::pi / 2 / half_width, degree);
      EXPECT_LE(LargestError(tanh, fit), bound + 1e-14) << half_width << ", " << degree;
    }
  }
}

// The interpolant of degree n of a function whose derivative has variation V is off by at most
// 4 V / (π (n - 1)) (Trefethen, theorem 7.2 for ν = 1). Relu's derivative jumps once, by 1, which
// is half_width in units of half the interval.
TEST(ChebyshevFit, ReluIsWithinTheBoundOfOneKink) {
  for (const double half_width : {1.0, 6.0}) {
    for (int degree = 2; degree <= 63; ++degree) {
      ASSERT_OK_AND_ASSIGN(const Polynomial fit,
                           ChebyshevFit(Relu, -half_width, half_width, degree));
      EXPECT_LE(LargestError(Relu, fit), 4 * half_width / (std::numbers::pi * (degree - 1)))
          << half_width << ", " << degree;
    }
  }
}

TEST(ChebyshevFit, ErrorsThatAreStated) {
  const auto tanh = [](double x) { return std::tanh(x); };
  const auto error = [](const auto& function, double half_width, int degree) {
    return LargestError(function, *ChebyshevFit(function, -half_width, half_width, degree));
  };
  EXPECT_NEAR(error(Sigmoid, 8, 7), 0.0296, 0.0001);
  EXPECT_NEAR(error(Sigmoid, 8, 15), 0.0014, 0.0001);
  EXPECT_NEAR(error(tanh, 4, 15), 0.0028, 0.0001);
  EXPECT_NEAR(error(Relu, 4, 15), 0.1256, 0.0001);
}

TEST(ChebyshevFit, PolynomialsAreTheirOwnFit) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int degree = 0; degree <= 40; ++degree) {
    Polynomial polynomial = {PolynomialBasis::kChebyshev, {}, -3, 5};
    for (int k = 0; k <= degree; ++k) polynomial.coefficients.push_back(uniform(random));
    const auto function = [&](double x) { return Evaluate(polynomial, x); };
    ASSERT_OK_AND_ASSIGN(const Polynomial fit, ChebyshevFit(function, -3, 5, degree));
    ASSERT_EQ(fit.coefficients.size(), polynomial.coefficients.size());
    for (int k = 0; k <= degree; ++k) {
      // Sums of 41 products of numbers below 41.
      EXPECT_NEAR(fit.coefficients[k], polynomial.coefficients[k], 1e-12);
    }
  }
}

TEST(ChebyshevFit, OddFunctionsHaveOddFitsAndEvenOnesEvenFits) {
  for (int degree = 1; degree <= 63; ++degree) {
    ASSERT_OK_AND_ASSIGN(const Polynomial odd,
                         ChebyshevFit([](double x) { return std::tanh(x); }, -5, 5, degree));
    ASSERT_OK_AND_ASSIGN(const Polynomial even,
                         ChebyshevFit([](double x) { return std::abs(x); }, -5, 5, degree));
    for (int k = 0; k <= degree; ++k) {
      EXPECT_EQ(k % 2 == 0 ? odd.coefficients[k] : even.coefficients[k], 0) << degree << ", " << k;
    }
  }
}

TEST(ChebyshevFit, RefusesWhatIsNoFunctionOnAnInterval) {
  EXPECT_THAT(ChebyshevFit(Sigmoid, -1, 1, -1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("fit: expected a degree of 0 to 127, got -1")));
  EXPECT_THAT(ChebyshevFit(Sigmoid, -1, 1, kMaxPolynomialDegree + 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got 128")));
  EXPECT_THAT(
      ChebyshevFit(Sigmoid, 2, 2, 3),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected an interval, got [2, 2]")));
  EXPECT_THAT(ChebyshevFit(Sigmoid, 0, std::numeric_limits<double>::infinity(), 3),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got [0, inf]")));
  EXPECT_THAT(ChebyshevFit([](double x) { return std::log(x); }, -1, 1, 3),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got nan")));
}

}  // namespace
}  // namespace cipherd::planning
