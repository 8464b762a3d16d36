// The inner loops of the host's kernels over one limb, vectorised for the processor that runs them.
//
//   if (const LimbKernels* vectors = LimbKernelsFor(prime.q, log_n)) {
//     vectors->forward_ntt(prime, log_n, in, out);
//   }
//
// They compute on doubles with fused multiply-add (fma_vectors-inl.h has the error bounds), which
// is exact for primes below 2^50, and give the words of the integer loops bit for bit. All words
// are canonical residues in [0, q); the loops run on the calling thread and keep nothing.
#pragma once

#include <array>
#include <cstdint>

#include "core/kernels/kernel_table.h"
#include "core/ring/ring_tables.h"

namespace cipherd::kernels::host {

// Primes at or above this take the integer loops.
inline constexpr uint64_t kVectorPrimeLimit = uint64_t{1} << 50;
// So do rings below this.
inline constexpr int kMinVectorLogN = 8;

// Where one limb of one batch item of a key inner product lies.
struct KeyProductOperands {
  int digit_count;
  const uint64_t* digits;
  int64_t digit_stride;
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

// `n` counts words and is a multiple of 256; q < kVectorPrimeLimit. `out` may be an input, but for
// the key inner product and the basis conversion.
struct LimbKernels {
  // "avx2", "avx512".
  const char* name;

  void (*forward_ntt)(const ring::PrimeConstants& prime, int log_n, const uint64_t* in,
                      uint64_t* out);
  void (*inverse_ntt)(const ring::PrimeConstants& prime, int log_n, const uint64_t* in,
                      uint64_t* out);

  void (*add)(uint64_t q, int64_t n, const uint64_t* a, const uint64_t* b, uint64_t* out);
  void (*subtract)(uint64_t q, int64_t n, const uint64_t* a, const uint64_t* b, uint64_t* out);
  void (*multiply)(uint64_t q, int64_t n, const uint64_t* a, const uint64_t* b, uint64_t* out);
  // sum += a · b.
  void (*multiply_add)(uint64_t q, int64_t n, const uint64_t* a, const uint64_t* b, uint64_t* sum);
  // out = a · scalar, scalar canonical.
  void (*multiply_scalar)(uint64_t q, int64_t n, uint64_t scalar, const uint64_t* a, uint64_t* out);
  // out = (a - b) · scalar.
  void (*subtract_scale)(uint64_t q, int64_t n, uint64_t scalar, const uint64_t* a,
                         const uint64_t* b, uint64_t* out);
  void (*tensor_product)(uint64_t q, int64_t n, const TensorProductOperands& operands);
  void (*key_inner_product)(uint64_t q, int64_t n, const KeyProductOperands& operands);

  // One polynomial: limb i of `in` and `out` begins at i · n. Every source prime is below
  // kVectorPrimeLimit; target primes need not be.
  void (*convert_basis)(const ring::RingTables& ring, const ring::BasisConversionTables& tables,
                        const uint64_t* in, uint64_t* out);
};

// The fastest loops that this processor has, or null where it has no fused multiply-add on vectors.
const LimbKernels* FindLimbKernels();

// Those for a prime and a ring; null where the integer loops have to do.
inline const LimbKernels* LimbKernelsFor(uint64_t q, int log_n) {
  return q < kVectorPrimeLimit && log_n >= kMinVectorLogN ? FindLimbKernels() : nullptr;
}

}  // namespace cipherd::kernels::host
