// Whole steps of key switching and of division by limbs, each in a few launches for all digits,
// limbs and polynomials: what a device offers beside the single operations of kernel_table.h where
// it has something faster than their composition.
//
// Each function gives the words of the composition that its comment names, bit for bit; core/ckks
// has those compositions, runs them where a device or a shape has no fused step, and its tests
// compare the two. The conventions of kernel_table.h hold. Scratch is written before it is read and
// holds nothing of use afterwards.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "core/kernels/poly_view.h"
#include "core/ring/ring_tables.h"
#include "core/runtime/stream.h"

namespace cipherd::kernels {

// Digits that one launch takes, and source limbs of one of them.
inline constexpr int kMaxFusedDigits = 6;
inline constexpr int kMaxFusedSources = 16;

// Some limbs of a polynomial, brought to other primes by fast basis conversion.
struct LimbLift {
  int first_packed = 0;  // its first source limb in the packed order of the plan
  // Bit l: target limb l is limb l of the operand, one of the lift's own, taken as it is.
  uint64_t own_limbs = 0;
  // From its source limbs to the target limbs that are not its own, ascending; device addresses.
  ring::BasisConversionTables conversion = {};
};

// Every digit of a polynomial raised to all limbs of QP (ModUp), or, with one lift, its dropped
// limbs brought to the remaining ones.
struct LiftPlan {
  // Packed limb p, lift by lift, is limb source_limb[p] of the operand.
  LimbPrimes packed;
  std::array<uint8_t, kMaxLimbs> source_limb = {};
  LimbPrimes target;
  int lift_count = 0;
  std::array<LimbLift, kMaxFusedDigits> lifts;
};

// Division of a polynomial by the product D of some of its limbs' primes with exact rounding, which
// drops those limbs: result = (x - [x]_D) · D^-1 with [x]_D in [-D/2, D/2). The operand's limbs are
// `head_count` dropped ones, the remaining ones, and the other dropped ones: rescaling drops a head
// of basis Q, ModDown the tail P of basis QP, and both together divide by both at once.
struct LimbDrop {
  int head_count = 0;
  LimbPrimes dropped;  // the head, then the tail
  LimbPrimes remaining;
  ring::BasisConversionTables conversion = {};  // dropped to remaining, device addresses
  LimbScalars inverse;                          // D^-1 modulo each remaining prime
  // A polynomial d over the head and the remaining limbs can be added to x as tail · d, `tail` the
  // product of the tail's primes: tail modulo each prime of the head, tail · D^-1 modulo each
  // remaining one.
  LimbScalars head_tail;
  LimbScalars remaining_tail;

  int tail_count() const { return dropped.count - head_count; }
  // Limb of the operand that is dropped limb p.
  int dropped_limb(int p) const { return p < head_count ? p : remaining.count + p; }
};

// What a division adds (see LimbDrop): polynomial o of the operand gets tail · poly[o](X^galois)
// for o below poly.outer_count; nothing where poly.data is null.
struct DropAddend {
  ConstPolyView poly;
  uint32_t galois_element = 1;
};

struct FusedKernels {
  // Rings that the functions take.
  int min_log_n;
  int max_log_n;

  // out[d, o] = lift d of in[o], NTT domain: own limbs copied, the others by inverse_ntt,
  // convert_basis and forward_ntt. `in` is [batch, limb, N], `packed` scratch of
  // [batch, packed limb, N], `out` [lift, batch, target limb, N].
  absl::Status (*lift)(const ring::RingTables& ring, const LiftPlan& plan, ConstPolyView in,
                       PolyView packed, PolyView out, runtime::Stream& stream);
  // key_inner_product of what `lift` gives: out[c, o], c in {0, 1}. `digits` is scratch of the
  // shape of lift's output.
  absl::Status (*switch_key)(const ring::RingTables& ring, const LiftPlan& plan,
                             uint32_t galois_element, ConstPolyView in, const KeySlot& key,
                             PolyView packed, PolyView digits, PolyView out,
                             runtime::Stream& stream);
  // out[o] = in[o] (with its addend) divided: inverse_ntt of the dropped limbs, convert_basis,
  // forward_ntt, subtract_scale. `packed` is scratch of [batch, dropped limb, N].
  absl::Status (*drop)(const ring::RingTables& ring, const LimbDrop& drop, ConstPolyView in,
                       const DropAddend& addend, PolyView packed, PolyView out,
                       runtime::Stream& stream);
};

}  // namespace cipherd::kernels
