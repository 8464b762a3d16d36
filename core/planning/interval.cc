#include "core/planning/interval.h"

#include <cstddef>
#include <numbers>
#include <vector>

namespace cipherd::planning {

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
