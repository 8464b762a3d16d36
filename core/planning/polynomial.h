// A polynomial of one variable, as data. Fitted by chebyshev_fit.h, evaluated on ciphertexts by
// polynomial_circuit.h.
//
//   Polynomial square = {PolynomialBasis::kPower, {0, 0, 1}, -4, 4};
#pragma once

#include <cstdint>
#include <vector>

namespace cipherd::planning {

enum class PolynomialBasis : uint8_t {
  // coefficients[k] · x^k.
  kPower,
  // coefficients[k] · T_k((2x - lower - upper) / (upper - lower)).
  kChebyshev,
};

struct Polynomial {
  PolynomialBasis basis = PolynomialBasis::kPower;
  std::vector<double> coefficients;
  // It stands for what is meant on [lower, upper].
  double lower = -1;
  double upper = 1;
};

// The value at a number: by Horner's rule, in the Chebyshev basis by Clenshaw's.
double Evaluate(const Polynomial& polynomial, double x);

}  // namespace cipherd::planning
