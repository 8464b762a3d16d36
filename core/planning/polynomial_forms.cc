#include "core/planning/polynomial_forms.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cipherd::planning {
namespace {

// How far the argument of a square may reach, in units of half its range.
constexpr double kMaxSquareReach = 8;

// Errors of what is multiplied by a factor later grow by it.
constexpr double kMaxCoefficient = 64;

double ReachOf(const Polynomial& polynomial) {
  return std::max(std::abs(polynomial.lower), std::abs(polynomial.upper));
}

}  // namespace

Polynomial Trimmed(Polynomial polynomial) {
  std::vector<double>& coefficients = polynomial.coefficients;
  while (coefficients.size() > 1 && coefficients.back() == 0) coefficients.pop_back();
  return polynomial;
}

NormalisedPolynomial Normalise(const Polynomial& polynomial, bool is_scale_free) {
  NormalisedPolynomial form = {.polynomial = polynomial, .lawful_argument = Interval(-1, 1)};
  if (polynomial.basis == PolynomialBasis::kChebyshev) {
    const double width = polynomial.upper - polynomial.lower;
    form.scale = 2 / width;
    form.shift = -(polynomial.upper + polynomial.lower) / width;
    form.polynomial.lower = -1;
    form.polynomial.upper = 1;
    return form;
  }
  const double reach = ReachOf(polynomial);
  if (!is_scale_free || reach <= 1) {
    form.lawful_argument = Interval(-std::max(1.0, reach), std::max(1.0, reach));
    return form;
  }
  const double unit = std::exp2(std::ceil(std::log2(reach)));
  form.scale = 1 / unit;
  form.polynomial.lower /= unit;
  form.polynomial.upper /= unit;
  double power = 1;
  for (double& coefficient : form.polynomial.coefficients) {
    coefficient *= power;
    power *= unit;
  }
  return form;
}

std::optional<CompletedSquare> CompleteSquare(const Polynomial& polynomial) {
  const std::vector<double>& c = polynomial.coefficients;
  // Of the normalised argument t: quadratic · t² + c[1] · t + constant, where T_2(t) = 2t² - 1.
  const NormalisedPolynomial form = Normalise(polynomial, /*is_scale_free=*/false);
  const bool is_power = polynomial.basis == PolynomialBasis::kPower;
  const double quadratic = is_power ? c[2] : 2 * c[2];
  const double constant = is_power ? c[0] : c[0] - c[2];
  const double middle = c[1] / (2 * quadratic);
  const CompletedSquare square = {.shift = (form.shift + middle) / form.scale,
                                  .factor = quadratic * form.scale * form.scale,
                                  .rest = constant - quadratic * middle * middle};
  const double reach = std::max(std::abs(polynomial.lower + square.shift),
                                std::abs(polynomial.upper + square.shift));
  const double half_width = (polynomial.upper - polynomial.lower) / 2;
  if (!(reach <= kMaxSquareReach * half_width)) return std::nullopt;
  return square;
}

double TakeLeadingFactor(Polynomial& polynomial) {
  std::vector<double>& c = polynomial.coefficients;
  const double factor = c.back();
  if (c.size() < 5 || !std::has_single_bit(c.size() - 1) || std::abs(factor) == 1) return 1;
  const bool is_large = std::any_of(c.begin(), c.end(), [&](double coefficient) {
    return std::abs(coefficient) > kMaxCoefficient * std::abs(factor);
  });
  if (is_large) return 1;
  for (double& coefficient : c) coefficient /= factor;
  return factor;
}

}  // namespace cipherd::planning
