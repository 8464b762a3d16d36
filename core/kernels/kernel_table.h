// Every operation that runs on a device: the whole seam between CKKS evaluation and the devices.
//
// A KernelTable is one set of launchers: for the host (kernels/host) or for CUDA (kernels/cuda),
// each with one arithmetic policy. The mathematics of an operation stands once, in <op>_body.h.
//
// Conventions, for every launcher:
//   - It enqueues on `stream` and does not synchronise. The caller keeps all blocks alive
//   (stream-ordered
//     storages do so by themselves for the stream they belong to).
//   - All addresses are memory of the stream's device. Words are canonical residues in [0, q), in
//   the
//     storage order of the wire (natural order of coefficients; NTT entry i is the value at
//     psi^(2·bitrev(i)+1)); outputs are canonical again.
//   - `out` may be one of the inputs where a comment says "in place"; otherwise ranges are
//   disjoint.
//   - Arguments are checked (counts, nulls, alignment) with InvalidArgument; a failed launch is
//   Internal
//     and sticks to the stream. Accesses are declared to a capturing stream.
//   - Launchers are thread-safe as far as streams are.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "core/ring/ring_tables.h"
#include "core/runtime/stream.h"

namespace cipherd::kernels {

// Limbs of one polynomial; log QP of a 128-bit secure context at N = 2^17 fits.
inline constexpr int kMaxLimbs = 64;
// Digits of a key switch.
inline constexpr int kMaxDigits = 64;

// Which prime each limb of an operand is taken modulo: row of RingTables::primes by limb.
struct LimbPrimes {
  int count = 0;
  std::array<uint16_t, kMaxLimbs> prime = {};
};

// One multiplicative constant per limb, canonical, with its Shoup quotient.
struct LimbScalars {
  std::array<uint64_t, kMaxLimbs> value = {};
  std::array<uint64_t, kMaxLimbs> shoup = {};
};

// Polynomials in memory: `outer_count` of them (components times batch), limb l of polynomial o
// begins at data + o · outer_stride + l · N. Strides count words. An input with outer_count 1 is
// broadcast over the polynomials of the other operand.
struct PolyView {
  uint64_t* data = nullptr;
  int64_t outer_count = 1;
  int64_t outer_stride = 0;
};
struct ConstPolyView {
  const uint64_t* data = nullptr;
  int64_t outer_count = 1;
  int64_t outer_stride = 0;

  ConstPolyView() = default;
  ConstPolyView(const uint64_t* d, int64_t count, int64_t stride)
      : data(d), outer_count(count), outer_stride(stride) {}
  ConstPolyView(const PolyView& v)  // NOLINT: a view of mutable words is one of const words
      : data(v.data), outer_count(v.outer_count), outer_stride(v.outer_stride) {}
};

enum class BinaryOp : uint8_t { kAdd, kSubtract, kMultiply };

// The key-switching key of one launch, read through a slot that holds its address, so that a
// captured launch can be pointed at another tenant's key by overwriting the slot. Key layout:
// [digit, 2, key_limb_count, N] words.
struct KeySlot {
  const uint64_t* const* slot = nullptr;  // device address of the address
  int key_limb_count = 0;                 // limbs that the key was made with
  int first_limb = 0;                     // key limb that belongs to limb 0 of the operand
  // Key digit that belongs to each digit of the operand. A digit without active primes is skipped,
  // and with an arbitrary partition the remaining ones need not be neighbours.
  std::array<uint16_t, kMaxDigits> key_digits = {};
};

struct KernelTable {
  // "host/integer", "cuda/integer".
  const char* name;

  // out = NTT(in): coefficient to NTT domain, per limb. In place allowed.
  absl::Status (*forward_ntt)(const ring::RingTables& ring, const LimbPrimes& limbs,
                              ConstPolyView in, PolyView out, runtime::Stream& stream);
  // out = NTT^-1(in). In place allowed.
  absl::Status (*inverse_ntt)(const ring::RingTables& ring, const LimbPrimes& limbs,
                              ConstPolyView in, PolyView out, runtime::Stream& stream);
  // out = a op b, entry by entry (kMultiply: NTT domain). In place allowed on either.
  absl::Status (*binary)(const ring::RingTables& ring, const LimbPrimes& limbs, BinaryOp op,
                         ConstPolyView a, ConstPolyView b, PolyView out, runtime::Stream& stream);
  // out = -a. In place allowed.
  absl::Status (*negate)(const ring::RingTables& ring, const LimbPrimes& limbs, ConstPolyView a,
                         PolyView out, runtime::Stream& stream);
  // sum = sum + a · b, entry by entry, NTT domain.
  absl::Status (*multiply_add)(const ring::RingTables& ring, const LimbPrimes& limbs,
                               ConstPolyView a, ConstPolyView b, PolyView sum,
                               runtime::Stream& stream);
  // out[l] = a[l] · scalars[l]. In place allowed.
  absl::Status (*multiply_scalars)(const ring::RingTables& ring, const LimbPrimes& limbs,
                                   const LimbScalars& scalars, ConstPolyView a, PolyView out,
                                   runtime::Stream& stream);
  // (out0, out1, out2) = (a0·b0, a0·b1 + a1·b0, a1·b1), NTT domain. a and b are [2, batch, limb, N]
  // with equal batch = outer_count / 2, out is [3, batch, limb, N]; component c of item i is
  // polynomial c · batch + i.
  absl::Status (*tensor_product)(const ring::RingTables& ring, const LimbPrimes& limbs,
                                 ConstPolyView a, ConstPolyView b, PolyView out,
                                 runtime::Stream& stream);
  // out(X) = a(X^galois_element), galois_element odd in [1, 2N), in the NTT domain (a permutation).
  absl::Status (*automorphism_ntt)(const ring::RingTables& ring, const LimbPrimes& limbs,
                                   uint32_t galois_element, ConstPolyView a, PolyView out,
                                   runtime::Stream& stream);
  // The same in the coefficient domain (a permutation with signs).
  absl::Status (*automorphism_coefficient)(const ring::RingTables& ring, const LimbPrimes& limbs,
                                           uint32_t galois_element, ConstPolyView a, PolyView out,
                                           runtime::Stream& stream);
  // out = the representative of `in` in [-Q/2, Q/2) modulo the target primes, coefficient domain.
  // `in` has tables.source_count limbs in the order of source_primes, `out` target_count limbs.
  // `tables` holds device addresses. The rounding uses doubles: off by Q for values within 2^-40 ·
  // Q of the ends.
  absl::Status (*convert_basis)(const ring::RingTables& ring,
                                const ring::BasisConversionTables& tables, ConstPolyView in,
                                PolyView out, runtime::Stream& stream);
  // out[l] = (a[l] - b[l]) · scalars[l]: the last step of rescale and of ModDown. In place allowed.
  absl::Status (*subtract_scale)(const ring::RingTables& ring, const LimbPrimes& limbs,
                                 const LimbScalars& scalars, ConstPolyView a, ConstPolyView b,
                                 PolyView out, runtime::Stream& stream);
  // Key switch inner product, NTT domain:
  //   out[c, o] = sum_d automorphism(digits[d, o]) · key[key_digits[d], c],  c in {0, 1}.
  // `digits` is [digit_count, batch, limb, N] with outer_count = digit_count · batch, `out` is
  // [2, batch, limb, N]. galois_element 1 leaves the digits as they are. Products are summed in 128
  // bits and reduced once.
  absl::Status (*key_inner_product)(const ring::RingTables& ring, const LimbPrimes& limbs,
                                    int digit_count, uint32_t galois_element, ConstPolyView digits,
                                    const KeySlot& key, PolyView out, runtime::Stream& stream);
  // out = a, limb by limb, between different strides (dropping limbs, broadcasting one polynomial).
  absl::Status (*copy)(const ring::RingTables& ring, int limb_count, ConstPolyView a, PolyView out,
                       runtime::Stream& stream);
  // out[o, l] = in[o] mod q_l for signed 64-bit coefficients: `in` is [outer_count, N] int64 with
  // in_outer_stride words between polynomials.
  absl::Status (*lift_signed)(const ring::RingTables& ring, const LimbPrimes& limbs,
                              const int64_t* in, int64_t in_outer_stride, PolyView out,
                              runtime::Stream& stream);
};

// The launchers for streams of `device`, integer arithmetic for primes below 2^61. Lives for ever.
const KernelTable& KernelsFor(const runtime::Device& device);

}  // namespace cipherd::kernels
