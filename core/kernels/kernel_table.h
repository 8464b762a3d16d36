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
#include "core/kernels/fused_kernels.h"
#include "core/kernels/poly_view.h"
#include "core/kernels/rotation_sums.h"
#include "core/ring/ring_tables.h"
#include "core/runtime/stream.h"

namespace cipherd::kernels {

enum class BinaryOp : uint8_t { kAdd, kSubtract, kMultiply };

// Which arithmetic launchers compute with. Results are equal bit for bit.
enum class Arithmetic : uint8_t {
  kInteger,  // 64-bit words: any ring
  kFma,      // doubles with fused multiply-add: rings with RingTables::all_fma only
  kMixed,    // each limb with what is fastest for its prime: any ring; the CPU device only
};

struct KernelTable {
  // "host/integer", "cuda/fma".
  const char* name;
  Arithmetic arithmetic;

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
  // Sums of rotations (rotation_sums.h), NTT domain. `digits` is [digit_count, items, limb, N], not
  // read where no rotation has a key, `addend` [2, items, limb, N], `out` [2, sum_count, batch,
  // limb, N]. Each rotation is reduced once, and so is each sum.
  absl::Status (*rotation_sums)(const ring::RingTables& ring, const LimbPrimes& limbs,
                                const RotationSums& sums, ConstPolyView digits,
                                ConstPolyView addend, PolyView out, runtime::Stream& stream);
  // out = a, limb by limb, between different strides (dropping limbs, broadcasting one polynomial).
  absl::Status (*copy)(const ring::RingTables& ring, int limb_count, ConstPolyView a, PolyView out,
                       runtime::Stream& stream);
  // out[o, l] = in[o] mod q_l for signed 64-bit coefficients: `in` is [outer_count, N] int64 with
  // in_outer_stride words between polynomials.
  absl::Status (*lift_signed)(const ring::RingTables& ring, const LimbPrimes& limbs,
                              const int64_t* in, int64_t in_outer_stride, PolyView out,
                              runtime::Stream& stream);

  // Null where the device has none.
  const FusedKernels* fused;
};

// The fastest one: kMixed on the CPU device; elsewhere kFma where the ring allows it and `device`
// computes with doubles at full rate.
Arithmetic FastestArithmetic(const runtime::Device& device, const ring::RingTables& ring);

// The launchers for streams of `device`; those with integers where it has none of `arithmetic`.
// Live for ever.
const KernelTable& KernelsFor(const runtime::Device& device, Arithmetic arithmetic);

}  // namespace cipherd::kernels
