#include "core/planning/polynomial_split.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/planning/exhaustive_split.h"
#include "tests/planning/known_splits.h"

namespace cipherd::planning {
namespace {

constexpr PolynomialBasis kBases[] = {PolynomialBasis::kPower, PolynomialBasis::kChebyshev};

int CeilLog2(int number) {
  int log = 0;
  while ((1 << log) < number) ++log;
  return log;
}

// Coefficients of all indices, or of those of odd ones; none is 1.
std::vector<double> Generic(int degree, bool is_odd) {
  std::vector<double> coefficients(degree + 1);
  for (int i = is_odd ? 1 : 0; i <= degree; i += is_odd ? 2 : 1) coefficients[i] = 0.3 / (i + 1);
  return coefficients;
}

uint64_t BitsOf(const std::vector<double>& coefficients) {
  uint64_t bits = 0;
  for (size_t i = 0; i < coefficients.size(); ++i) {
    if (coefficients[i] != 0) bits |= uint64_t{1} << i;
  }
  return bits;
}

std::set<int> IndicesOf(const SplitSum& sum) {
  std::set<int> indices;
  for (const SplitSum::Term& term : sum.terms) indices.insert(term.index);
  for (const SplitProduct& product : sum.products) {
    indices.insert(product.divisor);
    indices.merge(IndicesOf(product.quotient));
  }
  return indices;
}

// Of sums whose coefficients are not 1.
int DepthOf(const SplitSum& sum, const std::map<int, int>& depths) {
  int depth = 0;
  for (const SplitSum::Term& term : sum.terms) {
    depth = std::max(depth, depths.at(term.index) + 1);
  }
  for (const SplitProduct& product : sum.products) {
    depth =
        std::max({depth, depths.at(product.divisor) + 1, DepthOf(product.quotient, depths) + 1});
  }
  return depth;
}

// The numbers that are known against all ways that there are, as far as those can be tried.
TEST(PolynomialSplit, NoneOfAllWaysTakesFewerMultiplications) {
  for (int degree = 1; degree <= 31; ++degree) {
    for (const bool is_odd : {false, true}) {
      if (is_odd && degree % 2 == 0) continue;
      const uint64_t coefficients = BitsOf(Generic(degree, is_odd));
      const int depth = CeilLog2(degree + 1);
      const int fewest = FewestOf(PolynomialBasis::kPower, degree, is_odd);
      EXPECT_TRUE(ExhaustiveSplit::Suffices(coefficients, depth, fewest)) << degree;
      EXPECT_FALSE(ExhaustiveSplit::Suffices(coefficients, depth, fewest - 1)) << degree;
      if (degree > 1) {
        EXPECT_FALSE(ExhaustiveSplit::Suffices(coefficients, depth - 1, fewest + 3)) << degree;
      }
    }
  }
}

// Every product adds a sum of terms, each of as many coefficients as there are elements and one.
TEST(PolynomialSplit, OverAllDegreesTheNumberIsNearTwiceTheRoot) {
  for (int degree = 64; degree <= kMaxPolynomialDegree; degree += 21) {
    const PolynomialSplit split =
        SplitPolynomial(PolynomialBasis::kChebyshev, Generic(degree, /*is_odd=*/false));
    EXPECT_EQ(split.depth, 7);
    EXPECT_LE(split.multiplication_count * split.multiplication_count, 6 * degree);
  }
}

TEST(PolynomialSplit, ElementsAreMadeOfThoseBeforeAndAllAreRead) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 150; ++round) {
    const PolynomialBasis basis = kBases[round % 2];
    std::vector<double> coefficients = Generic(1 + static_cast<int>(random() % 40), false);
    for (double& coefficient : coefficients) {
      if (random() % 2 == 0) coefficient = 0;
    }
    coefficients.back() = 0.3;
    const int degree = static_cast<int>(coefficients.size()) - 1;
    const PolynomialSplit split = SplitPolynomial(basis, coefficients);
    EXPECT_EQ(split.depth, CeilLog2(degree + 1));
    std::map<int, int> depths = {{0, 0}, {1, 0}};
    std::set<int> read = IndicesOf(split.sum);
    for (const BasisElement& element : split.elements) {
      ASSERT_EQ(element.left + element.right, element.index);
      ASSERT_TRUE(depths.contains(element.left) && depths.contains(element.right));
      EXPECT_EQ(element.depth, std::max(depths[element.left], depths[element.right]) + 1);
      depths[element.index] = element.depth;
      read.insert({element.left, element.right});
      if (basis == PolynomialBasis::kChebyshev) {
        ASSERT_TRUE(depths.contains(element.left - element.right));
        read.insert(element.left - element.right);
      }
    }
    for (const BasisElement& element : split.elements) EXPECT_TRUE(read.contains(element.index));
    for (const int index : IndicesOf(split.sum)) EXPECT_TRUE(depths.contains(index));
    EXPECT_LE(DepthOf(split.sum, depths), split.depth);
  }
}

TEST(PolynomialSplit, CoefficientsOfOneMaySaveADepth) {
  struct Case {
    std::vector<double> coefficients;
    int depth;
    int multiplication_count;
  };
  const Case cases[] = {
      {{3, 1}, 0, 0},
      {{0, -1}, 0, 0},
      {{0, 0, 1}, 1, 1},
      {{5, 0.5, -1}, 1, 1},
      {{0, 0, 0.5}, 2, 1},
      {{0, 0, 0, 0, 1}, 2, 2},
      {{0, 0.5, 0, 1, 1}, 2, 2},
      {{0, 0.5, 0, 0.5, 1}, 2, 2},
      {{1, 1, 1, 1, 0.5}, 3, 2},
      {{0, 0, 0, 1}, 2, 2},
  };
  for (const Case& test : cases) {
    const PolynomialSplit split = SplitPolynomial(PolynomialBasis::kPower, test.coefficients);
    EXPECT_EQ(split.depth, test.depth) << test.coefficients.size();
    EXPECT_EQ(split.multiplication_count, test.multiplication_count) << test.coefficients.size();
  }
}

}  // namespace
}  // namespace cipherd::planning
