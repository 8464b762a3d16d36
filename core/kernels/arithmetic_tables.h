// Where an arithmetic finds its constants in the tables of a ring.
#pragma once

#include <cstdint>

#include "core/math/fma_arithmetic.h"
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
  // psi^bitrev(i) for i = first, first + 1, ….
  template <int kCount>
  static CIPHERD_HD void ForwardRoots(const ring::PrimeConstants& prime, uint32_t first,
                                      A::Root* roots) {
    CIPHERD_UNROLL
    for (int i = 0; i < kCount; ++i) {
      roots[i] = {prime.psi_powers[first + i], prime.psi_powers_shoup[first + i]};
    }
  }
  // psi^-bitrev(i) for i = first, first + 1, ….
  template <int kCount>
  static CIPHERD_HD void InverseRoots(const ring::PrimeConstants& prime, uint32_t first,
                                      A::Root* roots) {
    CIPHERD_UNROLL
    for (int i = 0; i < kCount; ++i) {
      roots[i] = {prime.psi_inverse_powers[first + i], prime.psi_inverse_powers_shoup[first + i]};
    }
  }
  // N^-1, and N^-1 · psi^-bitrev(1).
  static CIPHERD_HD A::Factor InverseN(const ring::PrimeConstants& prime, const A::Modulus&) {
    return {prime.n_inverse, prime.n_inverse_shoup};
  }
  static CIPHERD_HD A::Factor InverseNRoot(const ring::PrimeConstants& prime, const A::Modulus&) {
    return {prime.n_inverse_root, prime.n_inverse_root_shoup};
  }
};

// Requires primes below 2^kFmaPrimeBits.
template <>
struct ArithmeticTables<math::FmaArithmetic> {
  using A = math::FmaArithmetic;
  static_assert(A::kMaxBits == ring::kFmaPrimeBits);

  static CIPHERD_HD A::Modulus Modulus(const ring::PrimeConstants& prime) {
    return A::MakeModulus(prime.q_double, prime.q_inverse);
  }
  template <int kCount>
  static CIPHERD_HD void ForwardRoots(const ring::PrimeConstants& prime, uint32_t first,
                                      A::Root* roots) {
    Load<kCount>(prime.psi_powers_centred + first, roots);
  }
  template <int kCount>
  static CIPHERD_HD void InverseRoots(const ring::PrimeConstants& prime, uint32_t first,
                                      A::Root* roots) {
    Load<kCount>(prime.psi_inverse_powers_centred + first, roots);
  }
  static CIPHERD_HD A::Factor InverseN(const ring::PrimeConstants& prime, const A::Modulus& m) {
    return A::MakeFactor(prime.n_inverse, prime.n_inverse_shoup, m);
  }
  static CIPHERD_HD A::Factor InverseNRoot(const ring::PrimeConstants& prime, const A::Modulus& m) {
    return A::MakeFactor(prime.n_inverse_root, prime.n_inverse_root_shoup, m);
  }

 private:
  // `from` is aligned to two doubles where kCount is even: the roots of a stage begin at a multiple
  // of their number.
  template <int kCount>
  static CIPHERD_HD void Load(const double* from, A::Root* roots) {
#if defined(__CUDA_ARCH__)
    if constexpr (kCount % 2 == 0) {
      CIPHERD_UNROLL
      for (int i = 0; i < kCount; i += 2) {
        const double2 pair = __ldg(reinterpret_cast<const double2*>(from + i));
        roots[i] = pair.x;
        roots[i + 1] = pair.y;
      }
    } else {
      static_assert(kCount == 1);
      roots[0] = __ldg(from);
    }
#else
    for (int i = 0; i < kCount; ++i) roots[i] = from[i];
#endif
  }
};

}  // namespace cipherd::kernels
