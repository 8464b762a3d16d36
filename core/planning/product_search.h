// The fewest products that evaluate a polynomial with given elements of its basis. Internal to
// polynomial_split.h, which see.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "core/planning/index_set.h"
#include "core/planning/polynomial.h"
#include "core/planning/polynomial_split.h"

namespace cipherd::planning::internal {

// Which coefficients a polynomial has, and which of them are 1 or -1 and so need no product.
struct Support {
  IndexSet all;
  IndexSet units;

  bool operator==(const Support&) const = default;
};

// Of the coefficients themselves.
Support SupportOf(const std::vector<double>& coefficients);

class ProductSearch {
 public:
  static constexpr int kImpossible = 1 << 20;

  // `elements` with B_1, ascending; borrowed.
  ProductSearch(PolynomialBasis basis, const std::vector<BasisElement>& elements)
      : basis_(basis), elements_(elements) {}

  // Coefficients that a sum of depth `depth` takes as terms, without a product of ciphertexts.
  IndexSet TermsAt(int depth, const IndexSet& units) const;

  // The least number of products for a polynomial at `depth` where that is at most `limit`, else
  // kImpossible. Of equal ways, the one that divides by the largest elements.
  int Fewest(const Support& support, int depth, int limit);
  // What it is divided by for that, once its terms are taken off; 0 where nothing
  // remains. Requires that it is possible.
  int BestDivisor(const Support& support, int depth);

 private:
  struct State {
    Support support;
    int depth;

    bool operator==(const State&) const = default;
  };
  struct StateHash {
    size_t operator()(const State& state) const {
      return state.support.all.Hash() + 31 * state.support.units.Hash() + 131 * state.depth;
    }
  };
  struct Choice {
    // kImpossible: more than `limit`.
    int products = kImpossible;
    int divisor = 0;
    int limit = -1;
  };

  Choice Choose(Support support, int depth, int limit);
  // Of p = quotient · B_divisor + remainder.
  int ProductsOfDivision(const Support& support, int divisor, int depth, int limit);
  // Products that `support` takes at the least: each adds one sum, and a sum has no more
  // coefficients than there are elements, and the constant.
  int Bound(const IndexSet& support) const;

  const PolynomialBasis basis_;
  const std::vector<BasisElement>& elements_;
  std::unordered_map<State, Choice, StateHash> known_;
};

}  // namespace cipherd::planning::internal
