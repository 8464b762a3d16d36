// Polynomials of an edge of a circuit, at the least depth and with few multiplications.
//
//   CIPHERD_ASSIGN_OR_RETURN(const std::string y,
//                            AppendPolynomial(builder, x, sigmoid, "probability"));
//
// Depth: ceil(log2(degree + 1)) products, those by constants included, and one more where a
// Chebyshev basis of degree 2 or more has another interval than [-1, 1]: its argument is mapped
// there first. Who has a linear layer in front of the polynomial folds that map into it:
//
//   const IntervalMap map = MapToUnitInterval(sigmoid);   // scale the layer by map.scale, then add
//   sigmoid.lower = -1, sigmoid.upper = 1;                // map.shift to its bias
//
// A coefficient of exactly 1 or -1 in front of the highest power may save a depth: x^2 + c x is of
// depth 1 for c = 1. Numbers of multiplications are those of polynomial_split.h. An even polynomial
// is one of half the degree in B_2; an odd one reads no even coefficients. Of a constant, nothing
// is multiplied.
//
// Errors: on the interval of a Chebyshev basis every element is within [-1, 1], and in float64 the
// result is within a few n^2 · 2^-53 times the sum of the coefficients' magnitudes of the value, n
// the degree; tests assert 8 n^2. Outside of the interval the elements grow as (2x)^n. The power
// basis is as good on [-1, 1], and loses digits to large powers beyond.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/planning/circuit_builder.h"
#include "core/planning/polynomial.h"
#include "core/planning/polynomial_split.h"

namespace cipherd::planning {

// t = scale · x + shift.
struct IntervalMap {
  double scale = 1;
  double shift = 0;
};
// The map of [polynomial.lower, polynomial.upper] to [-1, 1]. Requires lower < upper.
IntervalMap MapToUnitInterval(const Polynomial& polynomial);

// Appends the map of an edge; `edge` itself where the interval is [-1, 1].
std::string AppendIntervalMap(CircuitBuilder& builder, std::string_view edge,
                              const Polynomial& polynomial, std::string_view base = {});

// Appends the polynomial's value at `edge` and returns the edge that has it: a new one, named after
// `base`, or `edge` itself for the polynomial x. InvalidArgument where coefficients are not
// finite, the degree is above kMaxPolynomialDegree, or a Chebyshev basis has no interval.
absl::StatusOr<std::string> AppendPolynomial(CircuitBuilder& builder, std::string_view edge,
                                             const Polynomial& polynomial,
                                             std::string_view base = {});

}  // namespace cipherd::planning
