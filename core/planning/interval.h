// Intervals of real numbers, and plain numbers under the same names, so that a computation can be
// written once for both.
//
//   Interval x(-1, 2);
//   Square(x)            // [0, 4]
//   (x * -3.0).lower     // -6
//
// Bounds are computed in binary64 without directed rounding: they are off by roundings, which is
// nothing beside the margins that bounds are used with. Plain values.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/planning/polynomial.h"

namespace cipherd::planning {

struct Interval {
  Interval() = default;
  explicit Interval(double point) : lower(point), upper(point) {}
  Interval(double lower, double upper) : lower(lower), upper(upper) {}

  double magnitude() const { return std::max(std::abs(lower), std::abs(upper)); }
  bool Contains(double point) const { return lower <= point && point <= upper; }
  bool IsWithin(const Interval& other) const {
    return other.lower <= lower && upper <= other.upper;
  }

  double lower = 0;
  double upper = 0;
};

inline Interval operator+(const Interval& a, const Interval& b) {
  return {a.lower + b.lower, a.upper + b.upper};
}
inline Interval operator-(const Interval& a, const Interval& b) {
  return {a.lower - b.upper, a.upper - b.lower};
}
inline Interval operator*(const Interval& a, double factor) {
  return factor < 0 ? Interval(a.upper * factor, a.lower * factor)
                    : Interval(a.lower * factor, a.upper * factor);
}
inline Interval operator*(const Interval& a, const Interval& b) {
  const auto [least, most] =
      std::minmax({a.lower * b.lower, a.lower * b.upper, a.upper * b.lower, a.upper * b.upper});
  return {least, most};
}
inline Interval Square(const Interval& a) {
  const double least = a.Contains(0) ? 0 : std::min(std::abs(a.lower), std::abs(a.upper));
  return {least * least, a.magnitude() * a.magnitude()};
}
inline double Square(double a) { return a * a; }

// Where the polynomial's values on `x` lie; what of `x` is outside [lower, upper] counts as cut off
// there. Not wider than they reach by more than 2 %.
Interval Evaluate(const Polynomial& polynomial, const Interval& x);

}  // namespace cipherd::planning
