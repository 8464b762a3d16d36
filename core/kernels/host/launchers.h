// Launchers of the CPU device, for one choice of loops (limb_kernel_choice.h). They take arguments
// that the front (kernel_table.cc) has checked; what each does is said in kernel_table.h. Defined
// in the .cc files of this folder, which instantiate them for every choice in use.
#pragma once

#include <cstdint>

#include "core/kernels/kernel_table.h"

namespace cipherd::kernels::host {

using ring::RingTables;
using runtime::Stream;

template <class Choice>
struct NttLaunchers {
  static absl::Status Forward(const RingTables&, const LimbPrimes&, ConstPolyView in, PolyView out,
                              Stream&);
  static absl::Status Inverse(const RingTables&, const LimbPrimes&, ConstPolyView in, PolyView out,
                              Stream&);
};

template <class Choice>
struct EntryLaunchers {
  static absl::Status Binary(const RingTables&, const LimbPrimes&, BinaryOp, ConstPolyView a,
                             ConstPolyView b, PolyView out, Stream&);
  static absl::Status Negate(const RingTables&, const LimbPrimes&, ConstPolyView a, PolyView out,
                             Stream&);
  static absl::Status MultiplyAdd(const RingTables&, const LimbPrimes&, ConstPolyView a,
                                  ConstPolyView b, PolyView sum, Stream&);
  static absl::Status MultiplyScalars(const RingTables&, const LimbPrimes&, const LimbScalars&,
                                      ConstPolyView a, PolyView out, Stream&);
  static absl::Status SubtractScale(const RingTables&, const LimbPrimes&, const LimbScalars&,
                                    ConstPolyView a, ConstPolyView b, PolyView out, Stream&);
  static absl::Status TensorProduct(const RingTables&, const LimbPrimes&, ConstPolyView a,
                                    ConstPolyView b, PolyView out, Stream&);
  static absl::Status Copy(const RingTables&, int limb_count, ConstPolyView a, PolyView out,
                           Stream&);
  static absl::Status LiftSigned(const RingTables&, const LimbPrimes&, const int64_t* in,
                                 int64_t in_outer_stride, PolyView out, Stream&);
};

template <class Choice>
struct AutomorphismLaunchers {
  static absl::Status Ntt(const RingTables&, const LimbPrimes&, uint32_t galois_element,
                          ConstPolyView a, PolyView out, Stream&);
  static absl::Status Coefficient(const RingTables&, const LimbPrimes&, uint32_t galois_element,
                                  ConstPolyView a, PolyView out, Stream&);
};

template <class Choice>
struct BasisConversionLaunchers {
  static absl::Status Convert(const RingTables&, const ring::BasisConversionTables&,
                              ConstPolyView in, PolyView out, Stream&);
};

template <class Choice>
struct KeyInnerProductLaunchers {
  static absl::Status Run(const RingTables&, const LimbPrimes&, int digit_count,
                          uint32_t galois_element, ConstPolyView digits, const KeySlot&,
                          PolyView out, Stream&);
};

template <class Choice>
struct RotationSumsLaunchers {
  static absl::Status Run(const RingTables&, const LimbPrimes&, const RotationSums&,
                          ConstPolyView digits, ConstPolyView addend, PolyView out, Stream&);
};

// All of them, with math::IntegerArithmetic; with math::FmaArithmetic, which takes rings whose
// primes are all below 2^50 (RingTables::all_fma); and with the fastest loops for each limb.
extern const KernelTable kIntegerLaunchers;
extern const KernelTable kFmaLaunchers;
extern const KernelTable kMixedLaunchers;

}  // namespace cipherd::kernels::host
