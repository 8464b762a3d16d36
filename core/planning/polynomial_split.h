// How a polynomial is evaluated on a ciphertext: which elements of its basis are computed, and how
// it is split into products with them.
//
//   PolynomialSplit split = SplitPolynomial(PolynomialBasis::kChebyshev, coefficients);
//   split.depth                 // ceil(log2(degree + 1))
//   split.multiplication_count  // of ciphertexts
//
// Paterson and Stockmeyer's baby and giant steps ("On the Number of Nonscalar Multiplications
// Necessary to Evaluate Polynomials", SIAM J. Comput. 2, 1973) at the least depth: with
// p = q · B_g + r, the quotient q is split at a depth less, the remainder r at the same, and what
// has a depth to spare takes larger baby steps (Bossuat et al., eprint 2020/1203, section 5). A
// product by a constant consumes a depth as one of ciphertexts does.
//
// The elements are searched for: 1 … k, of an odd polynomial also 1, 2, 3, 5 … k and 1, 2, 4, 6 … k,
// and behind them sums of two, the last ones doublings. Over what is tried, the number of products
// is the least; up to degree 31 it is that of an exhaustive search over all sets of elements and
// all ways to cover the coefficients by products with them (tests/planning/exhaustive_split.h). Not
// tried is what divides by polynomials that depend on the coefficients, such as the first paper's
// trick that halves the products: it divides by leading coefficients, and those of a fit are small.
//
// Takes up to 0.1 s at degree 63, up to a second at 127.
#pragma once

#include <vector>

#include "core/planning/polynomial.h"

namespace cipherd::planning {

inline constexpr int kMaxPolynomialDegree = 127;

// B_index made of two that come before it, right <= left: B_left · B_right, in the Chebyshev basis
// 2 · B_left · B_right - B_{left - right}, where B_0 = 1.
struct BasisElement {
  int index;
  int left;
  int right;
  int depth;
};

struct SplitProduct;
// constant + sum of coefficient · B_index + sum of quotient · B_divisor.
struct SplitSum {
  struct Term {
    int index;
    double coefficient;
  };

  double constant = 0;
  // Of distinct indices, ascending, without zeros.
  std::vector<Term> terms;
  std::vector<SplitProduct> products;
};
struct SplitProduct {
  int divisor;
  SplitSum quotient;
};

struct PolynomialSplit {
  // Those that are read, in an order in which they can be made; not B_0 and B_1.
  std::vector<BasisElement> elements;
  SplitSum sum;
  int depth = 0;
  int multiplication_count = 0;
};

// Requires finite coefficients, of index 0 to kMaxPolynomialDegree, a nonzero one behind index 0.
// A coefficient of 1 or -1 consumes no depth: x^4 has depth 2.
PolynomialSplit SplitPolynomial(PolynomialBasis basis, std::vector<double> coefficients);

}  // namespace cipherd::planning
