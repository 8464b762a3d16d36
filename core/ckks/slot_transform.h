// The canonical embedding in binary64: between the N real coefficients of a polynomial and its
// values in the S = N/2 slots. Internal to the layer; used by the encoder.
//
// With zeta = exp(i·pi/N), the values at zeta^(4k+1), k = 0 … S-1, are a discrete Fourier transform
// of S points, because zeta^(S(4k+1)) = i for every k:
//   p(zeta^(4k+1)) = sum_{j<S} (p_j + i·p_{j+S}) · zeta^j · exp(2·pi·i·jk/S).
// Slot j stands at zeta^e, e = generator^j mod 2N. Where e = 1 mod 4 that is k = (e-1)/4; otherwise
// -e is, and the slot's value is the conjugate of the value there.
//
// Errors: each of the log2 S butterfly levels and the twist round with relative error below 2^-52
// in the 2-norm, so that the result is off by less than (log2 S + 2) · 2^-52 times the largest slot
// times sqrt(S).
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

namespace cipherd::ckks::internal {

class SlotTransform {
 public:
  // Requires ring::ValidateGenerator(generator, log_n).
  SlotTransform(uint32_t generator, int log_n);

  // N coefficients, not rounded, of the polynomial whose slots are `slots` (S of them).
  std::vector<double> ToCoefficients(std::span<const std::complex<double>> slots) const;
  // S slots of the polynomial with these N coefficients.
  std::vector<std::complex<double>> ToSlots(std::span<const double> coefficients) const;

 private:
  // In place, natural order in and out: x_k = sum_j x_j · exp(±2·pi·i·jk/S).
  void Fourier(std::vector<std::complex<double>>& x, bool inverse) const;

  struct Position {
    uint32_t index;  // k
    bool conjugated;
  };
  int log_slots_;
  std::vector<Position> positions_;          // of each slot
  std::vector<std::complex<double>> twist_;  // zeta^j, j < S
  std::vector<std::complex<double>> roots_;  // exp(2·pi·i·j/S), j < S/2
};

}  // namespace cipherd::ckks::internal
