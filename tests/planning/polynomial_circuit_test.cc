#include "core/planning/polynomial_circuit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/planning/circuit_check.h"
#include "core/planning/circuit_depth.h"
#include "core/planning/circuit_twin.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/planning/exhaustive_split.h"
#include "tests/planning/known_splits.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

constexpr PolynomialBasis kBases[] = {PolynomialBasis::kPower, PolynomialBasis::kChebyshev};
constexpr int64_t kPositions = 16;

enum class Parity { kBoth, kOdd, kEven };

int CeilLog2(int number) {
  int log = 0;
  while ((1 << log) < number) ++log;
  return log;
}

// y = polynomial(x), with 0 added to where the edge of the polynomial is the input.
Circuit CircuitOf(const Polynomial& polynomial) {
  CircuitBuilder builder("test", kPositions);
  const std::string x = builder.Input("x", kPositions);
  std::string y = *AppendPolynomial(builder, x, polynomial, "y");
  if (y == x) y = builder.AddPlain(y, 0.0);
  builder.Output({.name = "y", .edge = y, .element_count = kPositions});
  return std::move(builder).Build();
}

int CountOf(const Circuit& circuit, std::vector<CircuitKind> kinds) {
  return std::count_if(
      circuit.operations.begin(), circuit.operations.end(), [&](const CircuitOperation& operation) {
        return std::find(kinds.begin(), kinds.end(), operation.kind) != kinds.end();
      });
}

int MultiplicationCount(const Circuit& circuit) {
  return CountOf(circuit, {CircuitKind::kMultiply, CircuitKind::kSquare});
}

Polynomial RandomPolynomial(PolynomialBasis basis, int degree, Parity parity,
                            std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  Polynomial polynomial = {basis, std::vector<double>(degree + 1)};
  for (int k = 0; k <= degree; ++k) {
    const bool is_there = parity == Parity::kBoth || (k % 2 == 1) == (parity == Parity::kOdd);
    if (is_there) polynomial.coefficients[k] = uniform(random);
  }
  return polynomial;
}

// At random numbers of [lower, upper]; the argument of a Chebyshev basis is off by its rounding,
// which counts n^2-fold, and the rest has the header's bound.
void ExpectEvaluates(const Circuit& circuit, const Polynomial& polynomial,
                     std::mt19937_64& random) {
  ASSERT_OK(CheckCircuit(circuit));
  std::uniform_real_distribution<double> uniform(polynomial.lower, polynomial.upper);
  std::vector<double> x(kPositions);
  for (double& number : x) number = uniform(random);
  x[0] = polynomial.lower;
  x[1] = polynomial.upper;
  ASSERT_OK_AND_ASSIGN(const auto outputs, EvaluateCircuit(circuit, {{"x", x}}));
  double magnitude = 0;
  for (const double coefficient : polynomial.coefficients) magnitude += std::abs(coefficient);
  const double degree = static_cast<double>(polynomial.coefficients.size());
  const double bound = 8 * degree * degree * std::ldexp(magnitude, -53);
  for (int64_t p = 0; p < kPositions; ++p) {
    EXPECT_NEAR(outputs.at("y")[p], Evaluate(polynomial, x[p]), bound)
        << "degree " << degree - 1 << " at " << x[p];
  }
}

TEST(PolynomialCircuit, ValuesDepthsAndMultiplicationsOfAllDegrees) {
  std::mt19937_64 random(1);
  for (const PolynomialBasis basis : kBases) {
    for (int degree = 1; degree <= 63; ++degree) {
      for (const Parity parity : {Parity::kBoth, Parity::kOdd, Parity::kEven}) {
        if (parity != Parity::kBoth && (degree % 2 == 1) != (parity == Parity::kOdd)) continue;
        const Polynomial polynomial = RandomPolynomial(basis, degree, parity, random);
        const Circuit circuit = CircuitOf(polynomial);
        ExpectEvaluates(circuit, polynomial, random);
        EXPECT_EQ(CircuitDepth(circuit), CeilLog2(degree + 1)) << degree;
        // An even polynomial is one of half the degree in the second element.
        const int count = parity == Parity::kEven
                              ? 1 + FewestOf(basis, degree / 2, /*is_odd=*/false)
                              : FewestOf(basis, degree, parity == Parity::kOdd);
        EXPECT_EQ(MultiplicationCount(circuit), count) << degree;
      }
    }
  }
}

TEST(PolynomialCircuit, ValuesAndDepthsOfSparsePolynomials) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 40; ++round) {
    const int degree = 1 + static_cast<int>(random() % 63);
    Polynomial polynomial = RandomPolynomial(kBases[round % 2], degree, Parity::kBoth, random);
    for (int k = 0; k < degree; ++k) {
      const uint64_t choice = random() % 8;
      if (choice < 4) polynomial.coefficients[k] = 0;
      // Numbers that need no product.
      if (choice == 4) polynomial.coefficients[k] = 1;
      if (choice == 5) polynomial.coefficients[k] = -1;
    }
    const Circuit circuit = CircuitOf(polynomial);
    ExpectEvaluates(circuit, polynomial, random);
    EXPECT_EQ(CircuitDepth(circuit), CeilLog2(degree + 1)) << degree;
  }
}

TEST(PolynomialCircuit, HighestPowersOfCoefficientOneSaveADepth) {
  std::mt19937_64 random(3);
  for (const PolynomialBasis basis : kBases) {
    for (const int degree : {1, 2, 4, 8, 16, 32}) {
      Polynomial power = {basis, std::vector<double>(degree + 1)};
      power.coefficients[degree] = degree % 3 == 1 ? 1 : -1;
      power.coefficients[0] = 0.25;
      const Circuit circuit = CircuitOf(power);
      ExpectEvaluates(circuit, power, random);
      EXPECT_EQ(CircuitDepth(circuit), CeilLog2(degree)) << degree;
      EXPECT_EQ(MultiplicationCount(circuit), CeilLog2(degree)) << degree;
    }
  }
}

TEST(PolynomialCircuit, OtherIntervalsCostOneDepthFromDegreeTwoOn) {
  std::mt19937_64 random(4);
  for (int degree = 1; degree <= 40; ++degree) {
    Polynomial polynomial =
        RandomPolynomial(PolynomialBasis::kChebyshev, degree, Parity::kBoth, random);
    polynomial.lower = -7;
    polynomial.upper = 2.5;
    const Circuit circuit = CircuitOf(polynomial);
    ExpectEvaluates(circuit, polynomial, random);
    EXPECT_EQ(CircuitDepth(circuit), CeilLog2(degree + 1) + (degree > 1 ? 1 : 0));
  }
}

TEST(PolynomialCircuit, AMapFoldedIntoTheLayerBeforeCostsNoDepth) {
  std::mt19937_64 random(5);
  Polynomial polynomial = RandomPolynomial(PolynomialBasis::kChebyshev, 7, Parity::kBoth, random);
  polynomial.lower = -3;
  polynomial.upper = 9;
  const IntervalMap map = MapToUnitInterval(polynomial);
  EXPECT_NEAR(map.scale * -3 + map.shift, -1, 1e-15);
  EXPECT_NEAR(map.scale * 9 + map.shift, 1, 1e-15);
  Polynomial unit = polynomial;
  unit.lower = -1;
  unit.upper = 1;
  CircuitBuilder builder("test", kPositions);
  const std::string x = builder.Input("x", kPositions);
  const std::string t = builder.AddPlain(builder.MultiplyPlain(x, map.scale), map.shift);
  ASSERT_OK_AND_ASSIGN(const std::string y, AppendPolynomial(builder, t, unit));
  builder.Output({.name = "y", .edge = y, .element_count = kPositions});
  const Circuit circuit = std::move(builder).Build();
  EXPECT_EQ(CircuitDepth(circuit), 1 + 3);
  ExpectEvaluates(circuit, polynomial, random);
}

TEST(PolynomialCircuit, TheMapOfTheUnitIntervalIsNone) {
  CircuitBuilder builder("test", kPositions);
  const std::string x = builder.Input("x", 1);
  EXPECT_EQ(AppendIntervalMap(builder, x, {.lower = -1, .upper = 1}), x);
  // A shift is no product.
  EXPECT_NE(AppendIntervalMap(builder, x, {.lower = 0, .upper = 2}), x);
  const Circuit circuit = std::move(builder).Build();
  EXPECT_EQ(circuit.operations.size(), 1u);
  EXPECT_EQ(CircuitDepth(circuit), 0);
}

// An even polynomial is one of half the degree in x^2: one more multiplication, and none fewer
// does.
TEST(PolynomialCircuit, EvenPolynomialsTakeTheFewestMultiplications) {
  std::mt19937_64 random(6);
  for (const PolynomialBasis basis : kBases) {
    for (int degree = 2; degree <= 30; degree += 2) {
      const Polynomial polynomial = RandomPolynomial(basis, degree, Parity::kEven, random);
      uint64_t coefficients = 0;
      for (int k = 0; k <= degree; k += 2) coefficients |= uint64_t{1} << k;
      const int count = MultiplicationCount(CircuitOf(polynomial));
      EXPECT_FALSE(ExhaustiveSplit::Suffices(coefficients, CeilLog2(degree + 1), count - 1))
          << degree;
    }
  }
}

TEST(PolynomialCircuit, MultiplicationsAreThoseOfTheSplit) {
  std::mt19937_64 random(7);
  for (const PolynomialBasis basis : kBases) {
    for (int degree = 1; degree <= 16; ++degree) {
      const Polynomial polynomial = RandomPolynomial(basis, degree, Parity::kBoth, random);
      EXPECT_EQ(MultiplicationCount(CircuitOf(polynomial)),
                SplitPolynomial(basis, polynomial.coefficients).multiplication_count);
    }
  }
}

TEST(PolynomialCircuit, ConstantsMultiplyNothing) {
  std::mt19937_64 random(8);
  for (const PolynomialBasis basis : kBases) {
    for (const std::vector<double>& coefficients :
         std::vector<std::vector<double>>{{}, {0}, {0, 0, 0}, {2.5}, {-1, 0}, {0, 1}, {3, -1}}) {
      const Polynomial polynomial = {basis, coefficients};
      const Circuit circuit = CircuitOf(polynomial);
      ExpectEvaluates(circuit, polynomial, random);
      EXPECT_EQ(CircuitDepth(circuit), 0);
    }
  }
}

TEST(PolynomialCircuit, ALinearPolynomialIsOneProduct) {
  std::mt19937_64 random(9);
  for (const PolynomialBasis basis : kBases) {
    const Polynomial polynomial = {basis, {0.5, 3, 0}, -4, 1};
    const Circuit circuit = CircuitOf(polynomial);
    ASSERT_EQ(circuit.operations.size(), 2u);
    EXPECT_EQ(circuit.operations[0].kind, CircuitKind::kMultiplyPlain);
    EXPECT_EQ(circuit.operations[1].kind, CircuitKind::kAddPlain);
    EXPECT_EQ(circuit.operations[1].name, "y");
    ExpectEvaluates(circuit, polynomial, random);
  }
}

TEST(PolynomialCircuit, OddPolynomialsReadNoEvenTerms) {
  std::mt19937_64 random(10);
  const Polynomial odd = RandomPolynomial(PolynomialBasis::kChebyshev, 17, Parity::kOdd, random);
  const Circuit circuit = CircuitOf(odd);
  EXPECT_EQ(CountOf(circuit, {CircuitKind::kAddPlain}), CountOf(circuit, {CircuitKind::kSquare}));
  // T_1, T_3, … T_17 once each, or their quotients.
  EXPECT_LE(CountOf(circuit, {CircuitKind::kMultiplyPlain}), 9);
}

TEST(PolynomialCircuit, TheLargestDegreeIsSound) {
  std::mt19937_64 random(11);
  const Polynomial polynomial =
      RandomPolynomial(PolynomialBasis::kChebyshev, kMaxPolynomialDegree, Parity::kBoth, random);
  const Circuit circuit = CircuitOf(polynomial);
  ExpectEvaluates(circuit, polynomial, random);
  EXPECT_EQ(CircuitDepth(circuit), 7);
}

TEST(PolynomialCircuit, RefusesWhatItCannotEvaluate) {
  CircuitBuilder builder("test", kPositions);
  const std::string x = builder.Input("x", 1);
  Polynomial large = {PolynomialBasis::kPower, std::vector<double>(kMaxPolynomialDegree + 2, 1)};
  EXPECT_THAT(AppendPolynomial(builder, x, large),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("polynomial: expected a degree of at most 127, got 128")));
  Polynomial infinite = {PolynomialBasis::kPower, {1, std::numeric_limits<double>::infinity()}};
  EXPECT_THAT(AppendPolynomial(builder, x, infinite),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected finite coefficients, got inf")));
  for (const auto& [lower, upper] :
       {std::pair<double, double>{1, 1}, {2, -2}, {0, std::numeric_limits<double>::infinity()}}) {
    Polynomial empty = {PolynomialBasis::kChebyshev, {1, 2, 3}, lower, upper};
    EXPECT_THAT(AppendPolynomial(builder, x, empty),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("polynomial: expected an interval, got [")));
  }
  EXPECT_TRUE(std::move(builder).Build().operations.empty());
}

}  // namespace
}  // namespace cipherd::planning
