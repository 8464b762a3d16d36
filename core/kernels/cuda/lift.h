// The launches that fused steps have in common: limbs of polynomials brought to other primes, up to
// the pass over rows that ends the forward transform (ntt_pass.cuh).
#pragma once

#include "core/kernels/cuda/launchers.h"
#include "core/kernels/fused_kernels.h"

namespace cipherd::kernels::cuda {

// What is added to the dropped limbs of the head before they are lifted; no poly for a ModUp.
struct HeadAddend {
  DropAddend addend;
  int head_count = 0;
  LimbScalars factor;
};

template <class A>
struct LiftLaunches {
  // Transforms the source limbs back, converts them, and takes the column pass of all target limbs
  // but own ones: `out`, [lift, batch, target limb, N], then holds residues under way where a limb
  // is not the lift's own, and nothing where it is. Requires kTwoPassMinLogN <= log N <=
  // kTwoPassMaxLogN.
  static absl::Status ThroughColumns(const RingTables&, const LiftPlan&, const HeadAddend&,
                                     ConstPolyView in, PolyView packed, PolyView out, Stream&);
};

template <class A>
struct FusedLaunchers {
  static absl::Status Lift(const RingTables&, const LiftPlan&, ConstPolyView in, PolyView packed,
                           PolyView out, Stream&);
  static absl::Status SwitchKey(const RingTables&, const LiftPlan&, uint32_t galois_element,
                                ConstPolyView in, const KeySlot&, PolyView packed, PolyView digits,
                                PolyView out, Stream&);
  static absl::Status Drop(const RingTables&, const LimbDrop&, ConstPolyView in, const DropAddend&,
                           PolyView packed, PolyView out, Stream&);
};

}  // namespace cipherd::kernels::cuda
