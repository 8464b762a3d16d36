// Upper bounds of CKKS errors, in the canonical embedding, for the tests of this folder.
//
// For a polynomial p, |p| is its largest slot magnitude. A slot is a ring homomorphism to the
// complex numbers, so |p + q| ≤ |p| + |q| and |p·q| ≤ |p|·|q| hold always. What is random enters
// through one rule: where the N coefficients are independent, of mean 0 and variance V, a slot is
// sum_i p_i · zeta^(ei), of variance N·V and close to a complex Gaussian, so that it exceeds
// 6·sqrt(N·V) with probability exp(-36) < 2^-51 (Costache, Smart, "Which Ring Based Somewhat
// Homomorphic Encryption Scheme is Best?", eprint 2015/889, uses the same rule). Thus,
// with sigma = 3.19:
//   error  E = 6·sigma·sqrt(N)       ternary (V = 2/3)  T = 6·sqrt(2N/3)      rounding (V = 1/12)
//   R = 6·sqrt(N/12)
//
//   encode               R, and the transform's binary64 error
//   encrypt, symmetric   E            encrypt, public key   T·E + E + T·E  (v·e + e0 + s·e1)
//   add                  sums         multiply   |m_a|·e_b + |m_b|·e_a + e_a·e_b
//   rescale by D         e/D + R·(1 + T + … ), one power of T for each component after the first
//   key switch           (sum_d 6·D_d·sqrt(N/12) · E) / P + R·(1 + T): a digit is uniform modulo
//   D_d, the
//                        product of its active primes, and meets one error of the key
//   rotate, conjugate    the same, for |.| does not change under automorphisms
//
// All bounds are of scaled quantities; divide by the scale for an error in values. They hold but
// for a probability below 2^-35 a test (2^16 slots); tests are seeded, so that they hold or not for
// ever.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/ckks/context_parameters.h"

namespace cipherd::testing {

class NoiseModel {
 public:
  // A ciphertext or plaintext: |message| · scale, and the bound of its error.
  struct State {
    double message = 0;
    double error = 0;
  };

  explicit NoiseModel(const ckks::ContextParameters& parameters)
      : parameters_(parameters), n_(static_cast<double>(parameters.ring_degree())) {}

  double Error() const { return 6 * 3.19 * std::sqrt(n_); }
  double Ternary() const { return 6 * std::sqrt(2 * n_ / 3); }
  double Rounding() const { return 6 * std::sqrt(n_ / 12); }
  // core/ckks/slot_transform.h: both directions, for slots of magnitude `message`.
  double Transform(double message) const {
    return 2 * (parameters_.log_n + 1) * 0x1p-52 * std::sqrt(n_ / 2) * message;
  }

  State Encode(double largest_slot, double scale) const {
    const double message = largest_slot * scale;
    return {message, Rounding() + Transform(message)};
  }
  State EncryptSymmetric(State plain) const { return {plain.message, plain.error + Error()}; }
  State EncryptPublic(State plain) const {
    return {plain.message, plain.error + Error() * (1 + 2 * Ternary())};
  }
  State Add(State a, State b) const { return {a.message + b.message, a.error + b.error}; }
  State Multiply(State a, State b) const {
    return {a.message * b.message, a.message * b.error + b.message * a.error + a.error * b.error};
  }
  State KeySwitch(State a, int depth) const {
    double p = 1;
    for (uint64_t prime : parameters_.p_primes) p *= static_cast<double>(prime);
    double sum = 0;
    for (const auto& digit : parameters_.digits) {
      double product = 1;
      bool is_active = false;
      for (int32_t id : digit) {
        if (id < parameters_.dropped_count(depth)) continue;
        product *= static_cast<double>(parameters_.q_primes[id]);
        is_active = true;
      }
      if (is_active) sum += product / p * Rounding() * Error();
    }
    return {a.message, a.error + sum + Rounding() * (1 + Ternary())};
  }
  State Rescale(State a, int depth, int components) const {
    const double divisor = parameters_.RescaleDivisor(depth);
    double rounding = 0;
    for (int c = 0; c < components; ++c) rounding += Rounding() * std::pow(Ternary(), c);
    return {a.message / divisor, a.error / divisor + rounding};
  }

 private:
  const ckks::ContextParameters& parameters_;
  double n_;
};

}  // namespace cipherd::testing
