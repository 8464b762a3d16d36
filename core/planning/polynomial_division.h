// Division of polynomials by one element B_g of their basis: x^g, or the Chebyshev polynomial T_g.
//
//   p = q · B_g + r, the degree of r below g.
//
// In the Chebyshev basis by T_g · T_i = (T_{g+i} + T_{|g-i|}) / 2 from the highest coefficient down
// (Bossuat, Mouchet, Troncoso-Pastoriza, Hubaux, "Efficient Bootstrapping for Approximate
// Homomorphic Encryption with Non-Sparse Keys", Eurocrypt 2021, eprint 2020/1203, section 5).
// Coefficients of q are at most twice as large as those of p where the degree of p is below 2g:
// nothing is divided by a coefficient of p, so that small ones do no harm.
#pragma once

#include <vector>

#include "core/planning/index_set.h"
#include "core/planning/polynomial.h"

namespace cipherd::planning {

struct Division {
  // Of as many coefficients as may be there: trailing zeros are kept.
  std::vector<double> quotient;
  std::vector<double> remainder;
};
// Requires divisor >= 1.
Division Divide(PolynomialBasis basis, std::vector<double> coefficients, int divisor);

// The same of which coefficients there are, taking none to vanish by cancellation.
struct SupportDivision {
  IndexSet quotient;
  IndexSet remainder;
};
SupportDivision Divide(PolynomialBasis basis, IndexSet support, int divisor);

}  // namespace cipherd::planning
