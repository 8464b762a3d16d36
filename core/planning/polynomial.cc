#include "core/planning/polynomial.h"

#include <cstddef>

namespace cipherd::planning {

double Evaluate(const Polynomial& polynomial, double x) {
  const std::vector<double>& c = polynomial.coefficients;
  if (c.empty()) return 0;
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

}  // namespace cipherd::planning
