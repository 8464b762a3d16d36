#include "core/planning/polynomial_division.h"

#include <algorithm>
#include <cstdlib>

namespace cipherd::planning {

Division Divide(PolynomialBasis basis, std::vector<double> coefficients, int divisor) {
  const int degree = static_cast<int>(coefficients.size()) - 1;
  Division division;
  division.quotient.resize(std::max(degree - divisor + 1, 0));
  for (int i = degree; i >= divisor; --i) {
    const double coefficient = coefficients[i];
    // T_g = T_g · T_0 is the one product of a single term.
    const bool is_single = basis == PolynomialBasis::kPower || i == divisor;
    division.quotient[i - divisor] = is_single ? coefficient : 2 * coefficient;
    if (!is_single) coefficients[std::abs(i - 2 * divisor)] -= coefficient;
  }
  coefficients.resize(std::min(degree + 1, divisor));
  division.remainder = std::move(coefficients);
  return division;
}

SupportDivision Divide(PolynomialBasis basis, IndexSet support, int divisor) {
  if (basis == PolynomialBasis::kChebyshev) {
    for (int i = support.Highest(); i > divisor; --i) {
      if (support.Contains(i)) support.Insert(std::abs(i - 2 * divisor));
    }
  }
  return {.quotient = support.From(divisor), .remainder = support.Below(divisor)};
}

}  // namespace cipherd::planning
