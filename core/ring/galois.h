// Galois elements: how rotations and conjugation of slots act on the ring, and where slots lie.
//
// The automorphism of g (odd, below 2N) maps a(X) to a(X^g). Slot j of S = N/2 is the value of a
// polynomial at zeta^(generator^j), zeta the complex 2N-th root exp(i·pi/N) (its conjugate, at
// zeta^-(generator^j), carries no more). Modulo a prime the same exponents stand at psi.
//
//   // Slot j of the result is slot j + 3 of the source.
//   const uint32_t element = RotationElement(3, /*generator=*/5, log_n);
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/math/bit_reverse.h"
#include "core/math/host_device.h"

namespace cipherd::ring {

// InvalidArgument unless generator is below 2N and its powers, with their negatives, are all odd
// numbers mod 2N: 3 or 5 mod 8.
absl::Status ValidateGenerator(uint32_t generator, int log_n);

// InvalidArgument unless element is odd and in [1, 2N).
absl::Status ValidateGaloisElement(uint32_t element, int log_n);

// The element whose automorphism brings slot (j + steps) mod S to slot j: generator^steps mod 2N.
// Any steps; they count modulo S. Requires ValidateGenerator.
uint32_t RotationElement(int64_t steps, uint32_t generator, int log_n);

// The element that conjugates every slot: 2N - 1.
uint32_t ConjugationElement(int log_n);

// The element h with g·h = 1 mod 2N. Requires g odd, below 2N.
uint32_t InverseElement(uint32_t g, int log_n);

// The exponent at which entry i of the NTT domain is the value: psi^(2·bitrev(i)+1). Requires i <
// N.
CIPHERD_HD uint32_t NttIndexToExponent(uint32_t i, int log_n) {
  return 2 * math::BitReverse(i, log_n) + 1;
}

// The entry of the NTT domain that is the value at psi^exponent. Requires exponent odd, below 2N.
CIPHERD_HD uint32_t NttExponentToIndex(uint32_t exponent, int log_n) {
  return math::BitReverse(exponent >> 1, log_n);
}

// The entry that the automorphism of g, in the NTT domain, brings to entry i. Requires i < N, g
// odd, below 2N.
CIPHERD_HD uint32_t AutomorphismNttSource(uint32_t i, uint32_t g, int log_n) {
  const uint32_t mask = (uint32_t{2} << log_n) - 1;
  return NttExponentToIndex((NttIndexToExponent(i, log_n) * g) & mask, log_n);
}

// AutomorphismNttSource for every entry.
std::vector<uint32_t> AutomorphismNttSources(uint32_t g, int log_n);

// Exponents generator^j mod 2N of the S slots in order. Requires ValidateGenerator.
std::vector<uint32_t> SlotExponents(uint32_t generator, int log_n);

}  // namespace cipherd::ring
