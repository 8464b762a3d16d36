#include "core/kernels/cuda/launchers.h"

#include "core/kernels/cuda/lift.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

template <class A>
constexpr FusedKernels kFused = {
    .min_log_n = kTwoPassMinLogN,
    .max_log_n = kTwoPassMaxLogN,
    .lift = FusedLaunchers<A>::Lift,
    .switch_key = FusedLaunchers<A>::SwitchKey,
    .drop = FusedLaunchers<A>::Drop,
};

template <class A>
constexpr KernelTable MakeTable(const char* name, Arithmetic arithmetic) {
  return {
      .name = name,
      .arithmetic = arithmetic,
      .forward_ntt = NttLaunchers<A>::Forward,
      .inverse_ntt = NttLaunchers<A>::Inverse,
      .binary = EntryLaunchers<A>::Binary,
      .negate = EntryLaunchers<A>::Negate,
      .multiply_add = EntryLaunchers<A>::MultiplyAdd,
      .multiply_scalars = EntryLaunchers<A>::MultiplyScalars,
      .tensor_product = EntryLaunchers<A>::TensorProduct,
      .automorphism_ntt = AutomorphismLaunchers<A>::Ntt,
      .automorphism_coefficient = AutomorphismLaunchers<A>::Coefficient,
      .convert_basis = BasisConversionLaunchers<A>::Convert,
      .subtract_scale = EntryLaunchers<A>::SubtractScale,
      .key_inner_product = KeyInnerProductLaunchers<A>::Run,
      .rotation_sums = RotationSumsLaunchers<A>::Run,
      .copy = EntryLaunchers<A>::Copy,
      .lift_signed = EntryLaunchers<A>::LiftSigned,
      .fused = &kFused<A>,
  };
}

}  // namespace

constinit const KernelTable kIntegerLaunchers =
    MakeTable<math::IntegerArithmetic>("cuda/integer", Arithmetic::kInteger);
constinit const KernelTable kFmaLaunchers =
    MakeTable<math::FmaArithmetic>("cuda/fma", Arithmetic::kFma);

}  // namespace cipherd::kernels::cuda
