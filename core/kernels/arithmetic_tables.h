// Where an arithmetic finds its constants in the tables of a ring.
#pragma once

#include <cstdint>

#include "core/math/host_device.h"
#include "core/math/integer_arithmetic.h"
#include "core/ring/ring_tables.h"

namespace cipherd::kernels {

// Specialised for each arithmetic that kernels are built with.
template <class A>
struct ArithmeticTables;

template <>
struct ArithmeticTables<math::IntegerArithmetic> {
  using A = math::IntegerArithmetic;

  static CIPHERD_HD A::Modulus Modulus(const ring::PrimeConstants& prime) {
    return math::MakeProductModulus({prime.q, prime.barrett_high, prime.barrett_low});
  }
  // psi^bitrev(i).
  static CIPHERD_HD A::Factor ForwardRoot(const ring::PrimeConstants& prime, uint32_t i) {
    return {prime.psi_powers[i], prime.psi_powers_shoup[i]};
  }
  // psi^-bitrev(i).
  static CIPHERD_HD A::Factor InverseRoot(const ring::PrimeConstants& prime, uint32_t i) {
    return {prime.psi_inverse_powers[i], prime.psi_inverse_powers_shoup[i]};
  }
  // N^-1, and N^-1 · psi^-bitrev(1).
  static CIPHERD_HD A::Factor InverseN(const ring::PrimeConstants& prime) {
    return {prime.n_inverse, prime.n_inverse_shoup};
  }
  static CIPHERD_HD A::Factor InverseNRoot(const ring::PrimeConstants& prime) {
    return {prime.n_inverse_root, prime.n_inverse_root_shoup};
  }
};

}  // namespace cipherd::kernels
