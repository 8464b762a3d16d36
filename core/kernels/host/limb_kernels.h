// The inner loops of the host's kernels over one limb, and the sets of them that there are.
//
// Launchers (launchers.h) find the limbs of their operands and run these on them; the mathematics
// is that of the bodies (<op>_body.h). Every set gives the same words. All words are canonical
// residues in [0, q) unless stated; loops run on the calling thread and keep nothing.
#pragma once

#include <array>
#include <cstdint>

#include "core/kernels/kernel_table.h"
#include "core/ring/ring_tables.h"

namespace cipherd::kernels::host {

// Where one limb of one batch item of a key inner product lies: sums of products that share one
// operand, the digits.
struct KeyProductOperands {
  int digit_count;
  std::array<const uint64_t*, kMaxDigits> digits;
  // The limb of the key's first component, by digit; the second is component_stride words on.
  std::array<const uint64_t*, kMaxDigits> key;
  int64_t component_stride;
  // Entry i of the key meets entry sources[i] of the digits; null where that is i itself.
  const uint32_t* sources;
  uint64_t* out0;
  uint64_t* out1;
};

// One limb of each operand of a tensor product.
struct TensorProductOperands {
  const uint64_t* a0;
  const uint64_t* a1;
  const uint64_t* b0;
  const uint64_t* b1;
  uint64_t* out0;
  uint64_t* out1;
  uint64_t* out2;
};

// `n` counts words. `out` may be an input, but for the key inner product, the basis conversion and
// the automorphism.
struct LimbKernels {
  using Prime = ring::PrimeConstants;

  // "integer", "fma", "avx2", "avx512".
  const char* name;

  void (*forward_ntt)(const Prime& prime, int log_n, const uint64_t* in, uint64_t* out);
  void (*inverse_ntt)(const Prime& prime, int log_n, const uint64_t* in, uint64_t* out);

  void (*add)(const Prime& prime, int64_t n, const uint64_t* a, const uint64_t* b, uint64_t* out);
  void (*subtract)(const Prime& prime, int64_t n, const uint64_t* a, const uint64_t* b,
                   uint64_t* out);
  void (*multiply)(const Prime& prime, int64_t n, const uint64_t* a, const uint64_t* b,
                   uint64_t* out);
  void (*negate)(const Prime& prime, int64_t n, const uint64_t* a, uint64_t* out);
  // sum += a · b.
  void (*multiply_add)(const Prime& prime, int64_t n, const uint64_t* a, const uint64_t* b,
                       uint64_t* sum);
  // out = a · scalar, and out = (a - b) · scalar, with scalar's Shoup quotient.
  void (*multiply_scalar)(const Prime& prime, int64_t n, uint64_t scalar, uint64_t shoup,
                          const uint64_t* a, uint64_t* out);
  void (*subtract_scale)(const Prime& prime, int64_t n, uint64_t scalar, uint64_t shoup,
                         const uint64_t* a, const uint64_t* b, uint64_t* out);
  void (*tensor_product)(const Prime& prime, int64_t n, const TensorProductOperands& operands);
  void (*key_inner_product)(const Prime& prime, int64_t n, const KeyProductOperands& operands);
  // Any signed coefficients.
  void (*lift_signed)(const Prime& prime, int64_t n, const int64_t* in, uint64_t* out);
  // Coefficient domain; galois_inverse is the inverse of the Galois element modulo 2N.
  void (*automorphism_coefficient)(const Prime& prime, int log_n, uint32_t galois_inverse,
                                   const uint64_t* a, uint64_t* out);

  // Coefficients `begin` to `end` of one polynomial, multiples of kConversionGrain or all N: limb i
  // of `in` and `out` begins at i · N. The source primes are the set's; any target primes.
  void (*convert_basis)(const ring::RingTables& ring, const ring::BasisConversionTables& tables,
                        int64_t begin, int64_t end, const uint64_t* in, uint64_t* out);
};

// Coefficients of a basis conversion that are not split further.
inline constexpr int64_t kConversionGrain = 256;

// One word after the other, with arithmetic A: math::IntegerArithmetic, which takes any prime, or
// math::FmaArithmetic, for primes below 2^50.
template <class A>
const LimbKernels& ScalarLimbKernels();

// On vectors of doubles with fused multiply-add, for primes below 2^ring::kFmaPrimeBits and rings
// of at least 2^kMinVectorLogN: the fastest set that this processor has, or null.
inline constexpr int kMinVectorLogN = 8;
const LimbKernels* FindVectorLimbKernels();

}  // namespace cipherd::kernels::host
