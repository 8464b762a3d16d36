#include "core/ckks/slot_transform.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "core/math/bit_reverse.h"
#include "core/ring/galois.h"

namespace cipherd::ckks::internal {
namespace {

using Complex = std::complex<double>;

// exp(2·pi·i·numerator/denominator), rounded from extended precision.
Complex RootOfUnity(int64_t numerator, int64_t denominator) {
  const long double angle = 2 * std::numbers::pi_v<long double> *
                            static_cast<long double>(numerator) /
                            static_cast<long double>(denominator);
  return {static_cast<double>(std::cos(angle)), static_cast<double>(std::sin(angle))};
}

// Plain complex product: the operator checks for infinities first.
Complex Times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

SlotTransform::SlotTransform(uint32_t generator, int log_n) : log_slots_(log_n - 1) {
  const int64_t slots = int64_t{1} << log_slots_;
  const uint32_t two_n = uint32_t{2} << log_n;
  for (uint32_t exponent : ring::SlotExponents(generator, log_n)) {
    const bool conjugated = exponent % 4 != 1;
    const uint32_t at = conjugated ? two_n - exponent : exponent;
    positions_.push_back({.index = (at - 1) / 4, .conjugated = conjugated});
  }
  for (int64_t j = 0; j < slots; ++j) twist_.push_back(RootOfUnity(j, two_n));
  for (int64_t j = 0; j < slots / 2; ++j) roots_.push_back(RootOfUnity(j, slots));
}

void SlotTransform::Fourier(std::vector<Complex>& x, bool inverse) const {
  const uint32_t count = uint32_t{1} << log_slots_;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t j = math::BitReverse(i, log_slots_);
    if (i < j) std::swap(x[i], x[j]);
  }
  for (uint32_t half = 1; half < count; half *= 2) {
    const uint32_t root_step = count / (2 * half);
    for (uint32_t block = 0; block < count; block += 2 * half) {
      for (uint32_t j = 0; j < half; ++j) {
        const Complex& root = roots_[j * root_step];
        const Complex term = Times(x[block + half + j], inverse ? std::conj(root) : root);
        x[block + half + j] = x[block + j] - term;
        x[block + j] += term;
      }
    }
  }
}

std::vector<double> SlotTransform::ToCoefficients(std::span<const Complex> slots) const {
  const size_t count = slots.size();
  std::vector<Complex> x(count);
  for (size_t j = 0; j < count; ++j) {
    x[positions_[j].index] = positions_[j].conjugated ? std::conj(slots[j]) : slots[j];
  }
  Fourier(x, /*inverse=*/true);
  std::vector<double> coefficients(2 * count);
  const double inverse_count = 1.0 / static_cast<double>(count);  // a power of two: exact
  for (size_t j = 0; j < count; ++j) {
    const Complex pair = Times(x[j], std::conj(twist_[j])) * inverse_count;
    coefficients[j] = pair.real();
    coefficients[j + count] = pair.imag();
  }
  return coefficients;
}

std::vector<Complex> SlotTransform::ToSlots(std::span<const double> coefficients) const {
  const size_t count = coefficients.size() / 2;
  std::vector<Complex> x(count);
  for (size_t j = 0; j < count; ++j) {
    x[j] = Times({coefficients[j], coefficients[j + count]}, twist_[j]);
  }
  Fourier(x, /*inverse=*/false);
  std::vector<Complex> slots(count);
  for (size_t j = 0; j < count; ++j) {
    const Complex& value = x[positions_[j].index];
    slots[j] = positions_[j].conjugated ? std::conj(value) : value;
  }
  return slots;
}

}  // namespace cipherd::ckks::internal
