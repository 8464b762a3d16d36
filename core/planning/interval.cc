#include "core/planning/interval.h"

#include <cstddef>
#include <numbers>
#include <vector>

namespace cipherd::planning {

double Evaluate(const Polynomial& polynomial, double x) {
  const std::vector<double>& c = polynomial.coefficients;
  if (polynomial.basis == PolynomialBasis::kPower) {
    double value = 0;
    for (size_t k = c.size(); k-- > 0;) value = value * x + c[k];
    return value;
  }
  // Clenshaw's recurrence.
  const double t =
      (2 * x - polynomial.lower - polynomial.upper) / (polynomial.upper - polynomial.lower);
  double next = 0, after_next = 0;
  for (size_t k = c.size(); k-- > 1;) {
    const double current = c[k] + 2 * t * next - after_next;
    after_next = next;
    next = current;
  }
  return c[0] + t * next - after_next;
}

Interval Evaluate(const Polynomial& polynomial, const Interval& x) {
  const double lower = std::clamp(x.lower, polynomial.lower, polynomial.upper);
  const double upper = std::clamp(x.upper, polynomial.lower, polynomial.upper);
  if (lower == upper) return Interval(Evaluate(polynomial, lower));
  // A polynomial of degree d is nowhere on the interval larger than 1 / cos(π d / 2m) times its
  // largest magnitude at m Chebyshev points (Ehlich and Zeller, 1964); here m = 8 (d + 1), after
  // the middle of its range is taken off.
  const size_t point_count = 8 * polynomial.coefficients.size();
  double least = INFINITY, most = -INFINITY;
  for (size_t i = 0; i < point_count; ++i) {
    const double angle = std::numbers::pi * (i + 0.5) / point_count;
    const double value =
        Evaluate(polynomial, (lower + upper) / 2 + (upper - lower) / 2 * std::cos(angle));
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const double factor = 1 / std::cos(std::numbers::pi / 16);
  const double middle = (least + most) / 2;
  const double reach = (most - least) / 2 * factor;
  return {middle - reach, middle + reach};
}

}  // namespace cipherd::planning
