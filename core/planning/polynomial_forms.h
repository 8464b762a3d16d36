// Forms of a polynomial that cost less on ciphertexts, of an argument that a layer before it gives.
//
//   polynomial(x) == form.polynomial(form.scale · x + form.shift)
//   polynomial(x) == square.factor · (x + square.shift)² + square.rest
//
// Plain values; thread-safe.
#pragma once

#include <optional>

#include "core/planning/interval.h"
#include "core/planning/polynomial.h"

namespace cipherd::planning {

// Without zeros behind the last coefficient that is none; at least one is left.
Polynomial Trimmed(Polynomial polynomial);

struct NormalisedPolynomial {
  double scale = 1;
  double shift = 0;
  // Its range is that of the argument.
  Polynomial polynomial;
  // Where arguments of no element must be, so that no power of them outgrows those of elements.
  Interval lawful_argument;
};
// In the Chebyshev basis on [-1, 1]. In the power basis of x itself or, where `is_scale_free`, of x
// over a power of two, so that powers of the argument stay within 1 and nothing is rounded.
NormalisedPolynomial Normalise(const Polynomial& polynomial, bool is_scale_free);

struct CompletedSquare {
  double shift = 0;
  double factor = 1;
  double rest = 0;
};
// Of a polynomial of degree 2 (three coefficients, the last not 0). Nothing where the square would
// be more than 64 times what a square over the range must be, since its error would be too.
std::optional<CompletedSquare> CompleteSquare(const Polynomial& polynomial);

// Divides `polynomial` by its last coefficient and returns that, where it saves a depth and leaves
// coefficients of at most 64: of degree 4, 8, 16, …, the highest power then takes no product of its
// own. Else it returns 1.
double TakeLeadingFactor(Polynomial& polynomial);

}  // namespace cipherd::planning
