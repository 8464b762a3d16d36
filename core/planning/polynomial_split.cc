#include "core/planning/polynomial_split.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/planning/index_set.h"
#include "core/planning/polynomial_division.h"
#include "core/planning/product_search.h"

namespace cipherd::planning {
namespace {

using internal::ProductSearch;
using internal::Support;
using internal::SupportOf;

// Behind the baby steps, so many elements may be any sum of two with the last one; the rest are
// doublings. Two reach the least number of products; above the degree it takes too long.
int FreeGiantCount(int degree) { return degree < 64 ? 2 : 1; }

int CeilLog2(int number) { return std::bit_width(static_cast<unsigned>(number - 1)); }

// Searches for the elements with which a polynomial takes the fewest multiplications at a depth.
class ElementSearch {
 public:
  ElementSearch(PolynomialBasis basis, Support support, int depth)
      : basis_(basis), support_(support), depth_(depth), degree_(support.all.Highest()) {
    IndexSet numbers = support.all;
    numbers.Erase(0);
    coefficient_count_ = numbers.Count();
    for (int i = 1; i <= degree_; ++i) {
      if (!numbers.Contains(i)) continue;
      is_odd_ = is_odd_ && i % 2 == 1;
    }
  }

  // Elements with B_1, ascending; nothing where the polynomial cannot be evaluated at the depth.
  std::optional<std::vector<BasisElement>> Search() {
    for (int last = 1; last <= degree_ && StartWith({1}, last, 1); ++last) SearchGiants();
    for (int last = 5; is_odd_ && last <= degree_ && StartWith({1, 2, 3}, last, 2); last += 2) {
      SearchGiants();
    }
    for (int last = 4; is_odd_ && last <= degree_ && StartWith({1, 2}, last, 2); last += 2) {
      SearchGiants();
    }
    if (best_.empty()) return std::nullopt;
    return best_;
  }

 private:
  // Elements `first`, and from their last one on in steps up to `last`; false where that leads to
  // nothing better.
  bool StartWith(const std::vector<int>& first, int last, int step) {
    elements_ = {{.index = 1, .left = 1, .right = 0, .depth = 0}};
    for (size_t i = 1; i < first.size(); ++i) {
      if (!Append(first[i])) return false;
    }
    for (int index = first.back() + step; index <= last; index += step) {
      if (!Append(index)) return false;
    }
    return best_.empty() || ElementCount() < fewest_;
  }

  // Tries the elements, and with them all giants behind.
  void SearchGiants(int giant_count = 0) {
    if (!MayImprove(/*with_more=*/true)) return;
    Try();
    const int last = elements_.back().index;
    const bool is_free = giant_count < FreeGiantCount(degree_);
    for (size_t i = is_free ? 0 : elements_.size() - 1; i < elements_.size(); ++i) {
      const int index = last + elements_[i].index;
      if (index > degree_ || !Append(index)) continue;
      SearchGiants(giant_count + 1);
      elements_.pop_back();
    }
  }

  void Try() {
    if (!MayImprove(/*with_more=*/false)) return;
    const int limit = best_.empty() ? ProductSearch::kImpossible - 1 : fewest_ - 1 - ElementCount();
    const int products = ProductSearch(basis_, elements_).Fewest(support_, depth_, limit);
    if (products == ProductSearch::kImpossible) return;
    best_ = elements_;
    fewest_ = ElementCount() + products;
  }

  int ElementCount() const { return static_cast<int>(elements_.size()) - 1; }

  // Whether a bound leaves room for fewer multiplications than the best so far, with more elements
  // or without. Every product adds one sum of terms, and the sums together have as many
  // coefficients as the polynomial: of n elements, a sum has n, of an odd polynomial those of one
  // parity, and the constant.
  bool MayImprove(bool with_more) const {
    if (best_.empty()) return true;
    int odd = 0;
    for (const BasisElement& element : elements_) odd += element.index % 2;
    const int count = static_cast<int>(elements_.size());
    for (int more = 0; more <= (with_more ? depth_ + 2 : 0); ++more) {
      const int odd_or_even = std::max(odd, count - odd) + more + 1;
      const int term_count = is_odd_ ? odd_or_even : count + more + 1;
      const int products = (coefficient_count_ + term_count - 1) / term_count - 1;
      if (ElementCount() + more + products < fewest_) return true;
    }
    return false;
  }

  // Appends B_index, made with the least depth, of two that are as near as can be. False where it
  // cannot be made, or is too deep to be read.
  bool Append(int index) {
    BasisElement best = {.index = index, .left = 0, .right = 0, .depth = depth_ + 1};
    for (const BasisElement& left : elements_) {
      for (const BasisElement& right : elements_) {
        const int difference = left.index - right.index;
        if (left.index + right.index != index || difference < 0) continue;
        if (basis_ == PolynomialBasis::kChebyshev && difference > 0 && !Has(difference)) continue;
        const int depth = std::max(left.depth, right.depth) + 1;
        // Ascending by `left`: the first of a depth are the nearest.
        if (depth < best.depth) best = {index, left.index, right.index, depth};
      }
    }
    const int latest = support_.units.Contains(index) ? depth_ : depth_ - 1;
    if (best.depth > latest) return false;
    elements_.push_back(best);
    return true;
  }

  bool Has(int index) const {
    return std::any_of(elements_.begin(), elements_.end(),
                       [index](const BasisElement& element) { return element.index == index; });
  }

  const PolynomialBasis basis_;
  const Support support_;
  const int depth_;
  const int degree_;
  // But for the constant.
  int coefficient_count_ = 0;
  bool is_odd_ = true;
  // Being tried, and the best so far with its number of multiplications.
  std::vector<BasisElement> elements_;
  std::vector<BasisElement> best_;
  int fewest_ = 0;
};

// Splits coefficients as a search says.
class Splitter {
 public:
  Splitter(PolynomialBasis basis, const std::vector<BasisElement>& elements)
      : basis_(basis), search_(basis, elements) {}

  SplitSum Split(std::vector<double> coefficients, int depth) {
    SplitSum sum;
    std::map<int, double> terms;
    for (;;) {
      const Support support = SupportOf(coefficients);
      const IndexSet taken = search_.TermsAt(depth, support.units);
      for (int i = 0; i < static_cast<int>(coefficients.size()); ++i) {
        if (!taken.Contains(i)) continue;
        terms[i] += std::exchange(coefficients[i], 0);
      }
      const int divisor = search_.BestDivisor(support, depth);
      if (divisor == 0) break;
      Division division = Divide(basis_, std::move(coefficients), divisor);
      AddProduct(sum, terms, divisor, Split(std::move(division.quotient), depth - 1));
      coefficients = std::move(division.remainder);
    }
    for (const auto& [index, coefficient] : terms) {
      if (index == 0) {
        sum.constant = coefficient;
      } else if (coefficient != 0) {
        sum.terms.push_back({index, coefficient});
      }
    }
    return sum;
  }

 private:
  // A quotient may turn out to be a number: coefficients cancel.
  static void AddProduct(SplitSum& sum, std::map<int, double>& terms, int divisor,
                         SplitSum quotient) {
    if (quotient.terms.empty() && quotient.products.empty()) {
      terms[divisor] += quotient.constant;
    } else {
      sum.products.push_back({divisor, std::move(quotient)});
    }
  }

  const PolynomialBasis basis_;
  ProductSearch search_;
};

int ProductCountOf(const SplitSum& sum) {
  int count = 0;
  for (const SplitProduct& product : sum.products) count += 1 + ProductCountOf(product.quotient);
  return count;
}

void AddIndices(const SplitSum& sum, std::set<int>& indices) {
  for (const SplitSum::Term& term : sum.terms) indices.insert(term.index);
  for (const SplitProduct& product : sum.products) {
    indices.insert(product.divisor);
    AddIndices(product.quotient, indices);
  }
}

// Of `elements`, those that `sum` reads, and what they are made of.
std::vector<BasisElement> ReadElements(PolynomialBasis basis,
                                       const std::vector<BasisElement>& elements,
                                       const SplitSum& sum) {
  std::set<int> read;
  AddIndices(sum, read);
  std::vector<BasisElement> kept;
  for (auto element = elements.rbegin(); element != elements.rend(); ++element) {
    if (element->index == 1 || !read.contains(element->index)) continue;
    kept.insert(kept.begin(), *element);
    read.insert({element->left, element->right});
    if (basis == PolynomialBasis::kChebyshev) read.insert(element->left - element->right);
  }
  return kept;
}

}  // namespace

PolynomialSplit SplitPolynomial(PolynomialBasis basis, std::vector<double> coefficients) {
  const Support support = SupportOf(coefficients);
  const int degree = support.all.Highest();
  // At ceil(log2(degree + 1)) every polynomial can be evaluated; below, some of coefficient 1.
  int depth = CeilLog2(degree);
  std::optional<std::vector<BasisElement>> elements;
  while (!(elements = ElementSearch(basis, support, depth).Search()).has_value()) ++depth;

  PolynomialSplit split;
  split.depth = depth;
  split.sum = Splitter(basis, *elements).Split(std::move(coefficients), depth);
  split.elements = ReadElements(basis, *elements, split.sum);
  split.multiplication_count = static_cast<int>(split.elements.size()) + ProductCountOf(split.sum);
  return split;
}

}  // namespace cipherd::planning
