#include "core/planning/chebyshev_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/planning/polynomial_split.h"

namespace cipherd::planning {
namespace {

template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("fit: ", parts...));
}

// cos(π j / 2n) for j in [0, 4n), of which those that are opposite are so exactly: so the points of
// an interval are symmetric, and the coefficients of an odd function cancel.
std::vector<double> Cosines(int n) {
  std::vector<double> cosines(4 * n);
  for (int j = 0; j < 4 * n; ++j) {
    const int mirrored = j <= 2 * n ? j : 4 * n - j;
    cosines[j] = std::sin(std::numbers::pi * (n - mirrored) / (2.0 * n));
  }
  return cosines;
}

}  // namespace

absl::StatusOr<Polynomial> ChebyshevFit(const std::function<double(double)>& function, double lower,
                                        double upper, int degree) {
  if (degree < 0 || degree > kMaxPolynomialDegree) {
    return Refuse("expected a degree of 0 to ", kMaxPolynomialDegree, ", got ", degree);
  }
  if (!(lower < upper) || !std::isfinite(upper - lower)) {
    return Refuse("expected an interval, got [", lower, ", ", upper, "]");
  }
  const int count = degree + 1;
  const std::vector<double> cosines = Cosines(count);
  std::vector<double> values;
  double largest = 0;
  for (int i = 0; i < count; ++i) {
    const double x = lower / 2 + upper / 2 + (upper - lower) / 2 * cosines[2 * i + 1];
    values.push_back(function(x));
    if (!std::isfinite(values.back())) {
      return Refuse("expected a finite value at ", x, ", got ", values.back());
    }
    largest = std::max(largest, std::abs(values.back()));
  }

  Polynomial polynomial = {PolynomialBasis::kChebyshev, std::vector<double>(count), lower, upper};
  const double rounding = 2 * count * std::numeric_limits<double>::epsilon() * largest;
  for (int k = 0; k < count; ++k) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += values[i] * cosines[k * (2 * i + 1) % (4 * count)];
    const double coefficient = (k == 0 ? 1.0 : 2.0) / count * sum;
    polynomial.coefficients[k] = std::abs(coefficient) <= rounding ? 0 : coefficient;
  }
  return polynomial;
}

double LargestError(const std::function<double(double)>& function, const Polynomial& polynomial,
                    int point_count) {
  double largest = 0;
  for (int i = 0; i <= point_count; ++i) {
    const double part = static_cast<double>(i) / point_count;
    const double x = polynomial.lower * (1 - part) + polynomial.upper * part;
    largest = std::max(largest, std::abs(function(x) - Evaluate(polynomial, x)));
  }
  return largest;
}

}  // namespace cipherd::planning
