#include "core/planning/product_search.h"

#include <algorithm>

#include "core/planning/polynomial_division.h"

namespace cipherd::planning::internal {

Support SupportOf(const std::vector<double>& coefficients) {
  Support support;
  for (int i = 0; i < static_cast<int>(coefficients.size()); ++i) {
    if (coefficients[i] != 0) support.all.Insert(i);
    if (coefficients[i] == 1 || coefficients[i] == -1) support.units.Insert(i);
  }
  return support;
}

IndexSet ProductSearch::TermsAt(int depth, const IndexSet& units) const {
  IndexSet terms;
  terms.Insert(0);
  for (const BasisElement& element : elements_) {
    const bool is_unit = units.Contains(element.index);
    if (element.depth + (is_unit ? 0 : 1) <= depth) terms.Insert(element.index);
  }
  return terms;
}

int ProductSearch::Fewest(const Support& support, int depth, int limit) {
  return Choose(support, depth, limit).products;
}

int ProductSearch::BestDivisor(const Support& support, int depth) {
  return Choose(support, depth, kImpossible - 1).divisor;
}

ProductSearch::Choice ProductSearch::Choose(Support support, int depth, int limit) {
  support.all = support.all.Without(TermsAt(depth, support.units));
  if (support.all.IsEmpty()) return {.products = 0};
  if (limit < 1) return {};
  // Of the others nothing is left.
  support.units = support.units.Without(support.units.Without(support.all));
  const State state = {support, depth};
  if (const auto known = known_.find(state); known != known_.end()) {
    const Choice& choice = known->second;
    if (choice.products < kImpossible) return choice.products <= limit ? choice : Choice{};
    if (choice.limit >= limit) return choice;
  }

  Choice best = {.limit = limit};
  for (auto element = elements_.rbegin(); element != elements_.rend(); ++element) {
    if (element->index > support.all.Highest() || element->depth >= depth) continue;
    const int less = std::min(limit, best.products - 1);
    const int products = ProductsOfDivision(support, element->index, depth, less);
    if (products < best.products) best = {products, element->index, limit};
  }
  return known_[state] = best;
}

int ProductSearch::ProductsOfDivision(const Support& support, int divisor, int depth, int limit) {
  const SupportDivision all = Divide(basis_, support.all, divisor);
  // Division changes coefficients in the Chebyshev basis.
  SupportDivision units;
  if (basis_ == PolynomialBasis::kPower) units = Divide(basis_, support.units, divisor);

  const int limit_of_quotient = limit - 1 - Bound(all.remainder);
  if (limit_of_quotient < Bound(all.quotient)) return kImpossible;
  const int quotient = Fewest({all.quotient, units.quotient}, depth - 1, limit_of_quotient);
  if (quotient == kImpossible) return kImpossible;
  const int limit_of_remainder = limit - 1 - quotient;
  const int remainder = Fewest({all.remainder, units.remainder}, depth, limit_of_remainder);
  return remainder == kImpossible ? kImpossible : 1 + quotient + remainder;
}

int ProductSearch::Bound(const IndexSet& support) const {
  const int term_count = static_cast<int>(elements_.size()) + 1;
  return (std::max(support.Count(), 1) + term_count - 1) / term_count - 1;
}

}  // namespace cipherd::planning::internal
