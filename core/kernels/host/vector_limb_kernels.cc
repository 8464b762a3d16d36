// Compiled once for each kind of processor that limb_kernels.h names; the one that runs is chosen
// at the first call.
#include "core/kernels/host/limb_kernels.h"
#include "core/math/integer_arithmetic.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernels/host/vector_limb_kernels.cc"
// The others have no fused multiply-add, or nothing that this needs.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
// clang-format off: this one includes the file again for each target, before those that follow.
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// clang-format on
#include "core/kernels/host/vector_entries-inl.h"
#include "core/kernels/host/vector_ntt-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cipherd::kernels::host::HWY_NAMESPACE {

#if CIPHERD_HAS_FMA_VECTORS

void ForwardNtt(const ring::PrimeConstants& prime, int log_n, const uint64_t* in, uint64_t* out) {
  VectorTransform(prime).ForwardTree(log_n, in, out);
}

void InverseNtt(const ring::PrimeConstants& prime, int log_n, const uint64_t* in, uint64_t* out) {
  VectorTransform(prime).InverseTree(log_n, in, out);
}

const LimbKernels* Find() {
  // What vectors do not help is done word by word.
  static const LimbKernels& scalar = ScalarLimbKernels<math::IntegerArithmetic>();
  static const LimbKernels kernels = {
      .name = HWY_TARGET == HWY_AVX2 ? "avx2" : "avx512",
      .forward_ntt = &ForwardNtt,
      .inverse_ntt = &InverseNtt,
      .add = &AddLimb,
      .subtract = &SubtractLimb,
      .multiply = &MultiplyLimb,
      .negate = &NegateLimb,
      .multiply_add = &MultiplyAddLimb,
      .multiply_scalar = &MultiplyScalarLimb,
      .subtract_scale = &SubtractScaleLimb,
      .tensor_product = &TensorProductLimb,
      .key_inner_product = &KeyInnerProductLimb,
      .lift_signed = scalar.lift_signed,
      .automorphism_coefficient = scalar.automorphism_coefficient,
      .convert_basis = &ConvertBasisOfLimbs,
  };
  return &kernels;
}

#else

const LimbKernels* Find() { return nullptr; }

#endif

}  // namespace cipherd::kernels::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cipherd::kernels::host {

HWY_EXPORT(Find);

const LimbKernels* FindVectorLimbKernels() { return HWY_DYNAMIC_DISPATCH(Find)(); }

}  // namespace cipherd::kernels::host
#endif
