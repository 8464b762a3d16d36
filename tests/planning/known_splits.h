// Numbers of ciphertext multiplications that polynomials of generic coefficients take.
#pragma once

#include "core/planning/polynomial.h"

namespace cipherd::planning {

// The least numbers of multiplications at the least depth: of degree 1 to 63, and of odd ones.
// Those up to 31 are tried in polynomial_split_test.cc; the same search, run once for minutes,
// agreed up to degree 40, and up to the odd 45.
inline constexpr int kFewest[] = {0,  1,  2,  2,  3,  4,  5,  4,  5,  5,  6,  6,  7,  7,  8,  7,
                                  8,  8,  8,  8,  9,  9,  10, 10, 10, 11, 11, 11, 12, 12, 13, 11,
                                  11, 11, 11, 12, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14,
                                  14, 15, 15, 15, 15, 15, 15, 15, 16, 16, 16, 16, 17, 17, 18};
inline constexpr int kFewestOfOdd[] = {0,  2,  3,  5,  5,  6,  7,  8,  7,  8,  8,
                                       9,  10, 10, 11, 12, 10, 11, 11, 11, 11, 12,
                                       12, 13, 14, 14, 14, 14, 15, 15, 16, 17};

inline int FewestOf(PolynomialBasis basis, int degree, bool is_odd) {
  if (!is_odd) return kFewest[degree - 1];
  // These want x^17 = x^16 · x; T_17 = 2 T_16 T_1 - T_15 would have T_15 made for it.
  const bool is_one_more = basis == PolynomialBasis::kChebyshev && (degree == 41 || degree == 45);
  return kFewestOfOdd[degree / 2] + (is_one_more ? 1 : 0);
}

}  // namespace cipherd::planning
