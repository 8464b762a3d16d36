// Polynomials in place of functions that ciphertexts cannot evaluate.
//
//   CIPHERD_ASSIGN_OR_RETURN(const Polynomial sigmoid,
//                            ChebyshevFit([](double x) { return 1 / (1 + std::exp(-x)); },
//                                         /*lower=*/-8, /*upper=*/8, /*degree=*/15));
//   LargestError(function, sigmoid)   // 0.0014 on [-8, 8]; nothing is said of what is outside
//
// The interpolant at the degree + 1 Chebyshev points of the first kind of the interval. It is at
// most 2 + (2/π) log(degree + 1) times farther from the function than the best polynomial of the
// degree (Trefethen, "Approximation Theory and Approximation Practice", 2013, theorem 15.2).
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "core/planning/polynomial.h"

namespace cipherd::planning {

// In the Chebyshev basis on [lower, upper], with exactly degree + 1 coefficients. Those that are
// roundings, at most (degree + 1) · 2^-51 times the function's largest value at the points, are 0,
// so that the polynomial of an odd function is odd. InvalidArgument for a degree outside
// [0, kMaxPolynomialDegree], no interval, or a value at a point that is not finite.
absl::StatusOr<Polynomial> ChebyshevFit(const std::function<double(double)>& function, double lower,
                                        double upper, int degree);

// The largest of |function(x) - polynomial(x)| at `point_count` + 1 numbers evenly over
// [polynomial.lower, polynomial.upper], both ends included. Requires point_count >= 1.
double LargestError(const std::function<double(double)>& function, const Polynomial& polynomial,
                    int point_count = 4096);

}  // namespace cipherd::planning
