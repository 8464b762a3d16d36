// Which loops a launcher runs on a limb: launchers are templates over one of these.
#pragma once

#include "core/kernels/host/limb_kernels.h"
#include "core/math/integer_arithmetic.h"
#include "core/ring/ring_tables.h"

namespace cipherd::kernels::host {

// The same for every limb.
template <class A>
struct ScalarChoice {
  static const LimbKernels& ForPrime(const ring::PrimeConstants&, int /*log_n*/) {
    return ScalarLimbKernels<A>();
  }
  static const LimbKernels& ForConversion(const ring::RingTables&,
                                          const ring::BasisConversionTables&) {
    return ScalarLimbKernels<A>();
  }
};

// Vectors where the prime and the ring allow them, else words.
struct MixedChoice {
  static const LimbKernels& ForPrime(const ring::PrimeConstants& prime, int log_n) {
    static const LimbKernels* const vectors = FindVectorLimbKernels();
    const bool fits = prime.q >> ring::kFmaPrimeBits == 0 && log_n >= kMinVectorLogN;
    return vectors != nullptr && fits ? *vectors : ScalarLimbKernels<math::IntegerArithmetic>();
  }
  static const LimbKernels& ForConversion(const ring::RingTables& ring,
                                          const ring::BasisConversionTables& tables) {
    const LimbKernels* choice = nullptr;
    for (int i = 0; i < tables.source_count; ++i) {
      choice = &ForPrime(ring.primes[tables.source_primes[i]], ring.log_n);
      if (choice == &ScalarLimbKernels<math::IntegerArithmetic>()) break;
    }
    return *choice;
  }
};

}  // namespace cipherd::kernels::host
