#include "core/kernels/host/launchers.h"

#include "core/kernels/host/limb_kernel_choice.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::host {
namespace {

template <class Choice>
constexpr KernelTable MakeTable(const char* name, Arithmetic arithmetic) {
  return {
      .name = name,
      .arithmetic = arithmetic,
      .forward_ntt = NttLaunchers<Choice>::Forward,
      .inverse_ntt = NttLaunchers<Choice>::Inverse,
      .binary = EntryLaunchers<Choice>::Binary,
      .negate = EntryLaunchers<Choice>::Negate,
      .multiply_add = EntryLaunchers<Choice>::MultiplyAdd,
      .multiply_scalars = EntryLaunchers<Choice>::MultiplyScalars,
      .tensor_product = EntryLaunchers<Choice>::TensorProduct,
      .automorphism_ntt = AutomorphismLaunchers<Choice>::Ntt,
      .automorphism_coefficient = AutomorphismLaunchers<Choice>::Coefficient,
      .convert_basis = BasisConversionLaunchers<Choice>::Convert,
      .subtract_scale = EntryLaunchers<Choice>::SubtractScale,
      .key_inner_product = KeyInnerProductLaunchers<Choice>::Run,
      .rotation_sums = RotationSumsLaunchers<Choice>::Run,
      .copy = EntryLaunchers<Choice>::Copy,
      .lift_signed = EntryLaunchers<Choice>::LiftSigned,
      .fused = nullptr,
  };
}

}  // namespace

constinit const KernelTable kIntegerLaunchers =
    MakeTable<ScalarChoice<math::IntegerArithmetic>>("host/integer", Arithmetic::kInteger);
constinit const KernelTable kFmaLaunchers =
    MakeTable<ScalarChoice<math::FmaArithmetic>>("host/fma", Arithmetic::kFma);
constinit const KernelTable kMixedLaunchers =
    MakeTable<MixedChoice>("host/mixed", Arithmetic::kMixed);

}  // namespace cipherd::kernels::host
