// The front of every table: checks arguments and declares accesses once for all devices, then calls
// the launcher of one device.
#include "core/kernels/kernel_table.h"

#include <algorithm>

#include "core/base/status_macros.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/launch_check.h"
#include "core/kernels/operand_checks.h"
#include "core/runtime/device.h"
#if CIPHERD_HAVE_CUDA
#include "core/kernels/cuda/launchers.h"
#endif

namespace cipherd::kernels {
namespace {

using ring::RingTables;
using runtime::Stream;

// kLaunchers is a table whose functions take for granted what kernel_table.h demands of arguments.
template <const KernelTable& kLaunchers>
struct Checked {
  static absl::Status ForwardNtt(const RingTables& ring, const LimbPrimes& limbs, ConstPolyView in,
                                 PolyView out, Stream& stream) {
    CIPHERD_RETURN_IF_ERROR(CheckUnary("forward_ntt", ring, limbs, in, out, stream));
    return kLaunchers.forward_ntt(ring, limbs, in, out, stream);
  }

  static absl::Status InverseNtt(const RingTables& ring, const LimbPrimes& limbs, ConstPolyView in,
                                 PolyView out, Stream& stream) {
    CIPHERD_RETURN_IF_ERROR(CheckUnary("inverse_ntt", ring, limbs, in, out, stream));
    return kLaunchers.inverse_ntt(ring, limbs, in, out, stream);
  }

  static absl::Status Binary(const RingTables& ring, const LimbPrimes& limbs, BinaryOp op,
                             ConstPolyView a, ConstPolyView b, PolyView out, Stream& stream) {
    LaunchCheck check("binary", ring, kLaunchers.arithmetic);
    check.RequireRange("op", 0, static_cast<int64_t>(BinaryOp::kMultiply),
                       static_cast<int64_t>(op));
    check.Limbs(limbs);
    check.Output("out", out, limbs.count);
    check.Input("a", a, limbs.count, out.outer_count, Overlap::kInPlace);
    check.Input("b", b, limbs.count, out.outer_count, Overlap::kInPlace);
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.binary(ring, limbs, op, a, b, out, stream);
  }

  static absl::Status Negate(const RingTables& ring, const LimbPrimes& limbs, ConstPolyView a,
                             PolyView out, Stream& stream) {
    CIPHERD_RETURN_IF_ERROR(CheckUnary("negate", ring, limbs, a, out, stream));
    return kLaunchers.negate(ring, limbs, a, out, stream);
  }

  static absl::Status MultiplyAdd(const RingTables& ring, const LimbPrimes& limbs, ConstPolyView a,
                                  ConstPolyView b, PolyView sum, Stream& stream) {
    LaunchCheck check("multiply_add", ring, kLaunchers.arithmetic);
    check.Limbs(limbs);
    check.Output("sum", sum, limbs.count);
    check.Input("a", a, limbs.count, sum.outer_count, Overlap::kDisjoint);
    check.Input("b", b, limbs.count, sum.outer_count, Overlap::kDisjoint);
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.multiply_add(ring, limbs, a, b, sum, stream);
  }

  static absl::Status MultiplyScalars(const RingTables& ring, const LimbPrimes& limbs,
                                      const LimbScalars& scalars, ConstPolyView a, PolyView out,
                                      Stream& stream) {
    CIPHERD_RETURN_IF_ERROR(CheckUnary("multiply_scalars", ring, limbs, a, out, stream));
    return kLaunchers.multiply_scalars(ring, limbs, scalars, a, out, stream);
  }

  static absl::Status TensorProduct(const RingTables& ring, const LimbPrimes& limbs,
                                    ConstPolyView a, ConstPolyView b, PolyView out,
                                    Stream& stream) {
    LaunchCheck check("tensor_product", ring, kLaunchers.arithmetic);
    check.Limbs(limbs);
    check.Require(out.outer_count % 3 == 0, "out.outer_count", "a multiple of 3", out.outer_count);
    check.Output("out", out, limbs.count);
    check.WholeInput("a", a, limbs.count, out.outer_count / 3 * 2, Overlap::kDisjoint);
    check.WholeInput("b", b, limbs.count, out.outer_count / 3 * 2, Overlap::kDisjoint);
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.tensor_product(ring, limbs, a, b, out, stream);
  }

  static absl::Status AutomorphismNtt(const RingTables& ring, const LimbPrimes& limbs,
                                      uint32_t galois_element, ConstPolyView a, PolyView out,
                                      Stream& stream) {
    CIPHERD_RETURN_IF_ERROR(
        CheckAutomorphism("automorphism_ntt", ring, limbs, galois_element, a, out, stream));
    return kLaunchers.automorphism_ntt(ring, limbs, galois_element, a, out, stream);
  }

  static absl::Status AutomorphismCoefficient(const RingTables& ring, const LimbPrimes& limbs,
                                              uint32_t galois_element, ConstPolyView a,
                                              PolyView out, Stream& stream) {
    CIPHERD_RETURN_IF_ERROR(
        CheckAutomorphism("automorphism_coefficient", ring, limbs, galois_element, a, out, stream));
    return kLaunchers.automorphism_coefficient(ring, limbs, galois_element, a, out, stream);
  }

  static absl::Status ConvertBasis(const RingTables& ring,
                                   const ring::BasisConversionTables& tables, ConstPolyView in,
                                   PolyView out, Stream& stream) {
    const int64_t sources = tables.source_count;
    const int64_t targets = tables.target_count;
    constexpr int64_t kWord = sizeof(uint64_t);
    LaunchCheck check("convert_basis", ring, kLaunchers.arithmetic);
    check.RequireRange("tables.source_count", 1, kMaxLimbs, sources);
    check.RequireRange("tables.target_count", 1, kMaxLimbs, targets);
    check.Read("tables.source_primes", tables.source_primes, sources * int64_t{sizeof(uint16_t)});
    check.Read("tables.target_primes", tables.target_primes, targets * int64_t{sizeof(uint16_t)});
    check.Read("tables.hat_inverse", tables.hat_inverse, sources * kWord);
    check.Read("tables.hat_inverse_shoup", tables.hat_inverse_shoup, sources * kWord);
    check.Read("tables.hat", tables.hat, sources * targets * kWord);
    check.Read("tables.source_product", tables.source_product, targets * kWord);
    check.Read("tables.source_inverse", tables.source_inverse, sources * kWord);
    check.Output("out", out, tables.target_count);
    check.Input("in", in, tables.source_count, out.outer_count, Overlap::kDisjoint);
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.convert_basis(ring, tables, in, out, stream);
  }

  static absl::Status SubtractScale(const RingTables& ring, const LimbPrimes& limbs,
                                    const LimbScalars& scalars, ConstPolyView a, ConstPolyView b,
                                    PolyView out, Stream& stream) {
    LaunchCheck check("subtract_scale", ring, kLaunchers.arithmetic);
    check.Limbs(limbs);
    check.Output("out", out, limbs.count);
    check.Input("a", a, limbs.count, out.outer_count, Overlap::kInPlace);
    check.Input("b", b, limbs.count, out.outer_count, Overlap::kInPlace);
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.subtract_scale(ring, limbs, scalars, a, b, out, stream);
  }

  static absl::Status KeyInnerProduct(const RingTables& ring, const LimbPrimes& limbs,
                                      int digit_count, uint32_t galois_element,
                                      ConstPolyView digits, const KeySlot& key, PolyView out,
                                      Stream& stream) {
    LaunchCheck check("key_inner_product", ring, kLaunchers.arithmetic);
    check.Limbs(limbs);
    check.GaloisElement(galois_element);
    check.RequireRange("digit_count", 1, kMaxDigits, digit_count);
    CheckKey(check, limbs, digit_count, key);
    check.Require(out.outer_count % 2 == 0, "out.outer_count", "a multiple of 2", out.outer_count);
    check.Output("out", out, limbs.count);
    check.WholeInput("digits", digits, limbs.count, out.outer_count / 2 * digit_count,
                     Overlap::kDisjoint);
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.key_inner_product(ring, limbs, digit_count, galois_element, digits, key, out,
                                        stream);
  }

  static absl::Status SumRotations(const RingTables& ring, const LimbPrimes& limbs,
                                   const RotationSums& sums, ConstPolyView digits,
                                   ConstPolyView addend, PolyView out, Stream& stream) {
    LaunchCheck check("rotation_sums", ring, kLaunchers.arithmetic);
    check.Limbs(limbs);
    check.RequireRange("sums.sum_count", 1, sums.has_factors ? kMaxRotationSums : 1,
                       sums.sum_count);
    check.RequireRange("sums.rotation_count", 1, kMaxSumRotations, sums.rotation_count);
    const int sum_count = std::clamp(sums.sum_count, 1, kMaxRotationSums);
    check.Require(out.outer_count % (2 * sum_count) == 0, "out.outer_count",
                  "two polynomials for each sum and item", out.outer_count);
    check.Output("out", out, limbs.count);
    const int64_t batch = out.outer_count / (2 * sum_count);
    CheckRotations(check, limbs, sums, batch, digits, addend);
    for (int s = 0; sums.has_factors && s < sum_count; ++s) {
      for (int r = 0; r < std::min(sums.rotation_count, kMaxSumRotations); ++r) {
        const RotationSums::Factor& factor = sums.factors[s][r];
        if (factor.data == nullptr) continue;
        const ConstPolyView view(factor.data, factor.item_stride == 0 ? 1 : batch,
                                 factor.item_stride);
        check.Input("sums.factors", view, limbs.count, batch, Overlap::kDisjoint);
      }
    }
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.rotation_sums(ring, limbs, sums, digits, addend, out, stream);
  }

  static absl::Status Copy(const RingTables& ring, int limb_count, ConstPolyView a, PolyView out,
                           Stream& stream) {
    LaunchCheck check("copy", ring, kLaunchers.arithmetic);
    check.RequireRange("limb_count", 1, kMaxLimbs, limb_count);
    check.Output("out", out, limb_count);
    check.Input("a", a, limb_count, out.outer_count, Overlap::kDisjoint);
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.copy(ring, limb_count, a, out, stream);
  }

  static absl::Status LiftSigned(const RingTables& ring, const LimbPrimes& limbs, const int64_t* in,
                                 int64_t in_outer_stride, PolyView out, Stream& stream) {
    const ConstPolyView words(reinterpret_cast<const uint64_t*>(in), out.outer_count,
                              in_outer_stride);
    LaunchCheck check("lift_signed", ring, kLaunchers.arithmetic);
    check.Limbs(limbs);
    check.Output("out", out, limbs.count);
    check.WholeInput("in", words, /*limb_count=*/1, out.outer_count, Overlap::kDisjoint);
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.lift_signed(ring, limbs, in, in_outer_stride, out, stream);
  }

  static absl::Status Lift(const RingTables& ring, const LiftPlan& plan, ConstPolyView in,
                           PolyView packed, PolyView out, Stream& stream) {
    LaunchCheck check("lift", ring, kLaunchers.arithmetic);
    CheckDegree(check, ring);
    CheckPlan(check, plan);
    check.Output("out", out, plan.target.count);
    check.WholeInput("in", in, OperandLimbs(plan), in.outer_count, Overlap::kDisjoint);
    check.Scratch("packed", packed, plan.packed.count, in.outer_count);
    check.Require(out.outer_count == plan.lift_count * in.outer_count, "out.outer_count",
                  "one polynomial for each lift and item", out.outer_count);
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.fused->lift(ring, plan, in, packed, out, stream);
  }

  static absl::Status SwitchKey(const RingTables& ring, const LiftPlan& plan,
                                uint32_t galois_element, ConstPolyView in, const KeySlot& key,
                                PolyView packed, PolyView digits, PolyView out, Stream& stream) {
    LaunchCheck check("switch_key", ring, kLaunchers.arithmetic);
    CheckDegree(check, ring);
    CheckPlan(check, plan);
    check.GaloisElement(galois_element);
    CheckKey(check, plan.target, plan.lift_count, key);
    check.Output("out", out, plan.target.count);
    check.Require(out.outer_count == 2 * in.outer_count, "out.outer_count",
                  "two polynomials for each item", out.outer_count);
    check.WholeInput("in", in, OperandLimbs(plan), in.outer_count, Overlap::kDisjoint);
    check.Scratch("packed", packed, plan.packed.count, in.outer_count);
    check.Scratch("digits", digits, plan.target.count, plan.lift_count * in.outer_count);
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.fused->switch_key(ring, plan, galois_element, in, key, packed, digits, out,
                                        stream);
  }

  static absl::Status Drop(const RingTables& ring, const LimbDrop& drop, ConstPolyView in,
                           const DropAddend& addend, PolyView packed, PolyView out,
                           Stream& stream) {
    LaunchCheck check("drop", ring, kLaunchers.arithmetic);
    CheckDegree(check, ring);
    check.Limbs(drop.dropped);
    check.Limbs(drop.remaining);
    check.RequireRange("drop.dropped.count", 1, kMaxFusedSources, drop.dropped.count);
    check.RequireRange("drop.head_count", 0, drop.dropped.count, drop.head_count);
    CheckConversion(check, drop.conversion, drop.dropped.count, drop.remaining.count);
    check.Output("out", out, drop.remaining.count);
    check.WholeInput("in", in, drop.dropped.count + drop.remaining.count, out.outer_count,
                     Overlap::kDisjoint);
    check.Scratch("packed", packed, drop.dropped.count, out.outer_count);
    check.GaloisElement(addend.galois_element);
    if (addend.poly.data != nullptr) {
      check.RequireRange("addend.poly.outer_count", 1, out.outer_count, addend.poly.outer_count);
      check.WholeInput("addend.poly", addend.poly, drop.head_count + drop.remaining.count,
                       addend.poly.outer_count, Overlap::kDisjoint);
    }
    CIPHERD_RETURN_IF_ERROR(check.Finish(stream));
    return kLaunchers.fused->drop(ring, drop, in, addend, packed, out, stream);
  }

 private:
  static void CheckDegree(LaunchCheck& check, const RingTables& ring) {
    check.RequireRange("ring.log_n", kLaunchers.fused->min_log_n, kLaunchers.fused->max_log_n,
                       ring.log_n);
  }

  static absl::Status CheckUnary(const char* op, const RingTables& ring, const LimbPrimes& limbs,
                                 ConstPolyView in, PolyView out, Stream& stream) {
    LaunchCheck check(op, ring, kLaunchers.arithmetic);
    check.Limbs(limbs);
    check.Output("out", out, limbs.count);
    check.Input("in", in, limbs.count, out.outer_count, Overlap::kInPlace);
    return check.Finish(stream);
  }

  static absl::Status CheckAutomorphism(const char* op, const RingTables& ring,
                                        const LimbPrimes& limbs, uint32_t galois_element,
                                        ConstPolyView a, PolyView out, Stream& stream) {
    LaunchCheck check(op, ring, kLaunchers.arithmetic);
    check.Limbs(limbs);
    check.GaloisElement(galois_element);
    check.Output("out", out, limbs.count);
    check.Input("a", a, limbs.count, out.outer_count, Overlap::kDisjoint);
    return check.Finish(stream);
  }
};

template <const KernelTable& kLaunchers>
const KernelTable& CheckedTable() {
  using Front = Checked<kLaunchers>;
  static const FusedKernels fused = {
      .min_log_n = kLaunchers.fused == nullptr ? 0 : kLaunchers.fused->min_log_n,
      .max_log_n = kLaunchers.fused == nullptr ? 0 : kLaunchers.fused->max_log_n,
      .lift = Front::Lift,
      .switch_key = Front::SwitchKey,
      .drop = Front::Drop,
  };
  static const KernelTable table = {
      .name = kLaunchers.name,
      .arithmetic = kLaunchers.arithmetic,
      .forward_ntt = Front::ForwardNtt,
      .inverse_ntt = Front::InverseNtt,
      .binary = Front::Binary,
      .negate = Front::Negate,
      .multiply_add = Front::MultiplyAdd,
      .multiply_scalars = Front::MultiplyScalars,
      .tensor_product = Front::TensorProduct,
      .automorphism_ntt = Front::AutomorphismNtt,
      .automorphism_coefficient = Front::AutomorphismCoefficient,
      .convert_basis = Front::ConvertBasis,
      .subtract_scale = Front::SubtractScale,
      .key_inner_product = Front::KeyInnerProduct,
      .rotation_sums = Front::SumRotations,
      .copy = Front::Copy,
      .lift_signed = Front::LiftSigned,
      .fused = kLaunchers.fused == nullptr ? nullptr : &fused,
  };
  return table;
}

}  // namespace

Arithmetic FastestArithmetic(const runtime::Device& device, const RingTables& ring) {
  if (device.id().kind != runtime::DeviceId::Kind::kCuda) return Arithmetic::kMixed;
  // A double a clock for every second lane. All other GPUs, so far, have a 32nd or a 64th of that.
  const int capability = device.properties().compute_capability;
  const bool has_fast_doubles = capability == 80 || capability == 90 || capability == 100;
  return ring.all_fma && has_fast_doubles ? Arithmetic::kFma : Arithmetic::kInteger;
}

const KernelTable& KernelsFor(const runtime::Device& device, Arithmetic arithmetic) {
#if CIPHERD_HAVE_CUDA
  if (device.id().kind == runtime::DeviceId::Kind::kCuda) {
    return arithmetic == Arithmetic::kFma ? CheckedTable<cuda::kFmaLaunchers>()
                                          : CheckedTable<cuda::kIntegerLaunchers>();
  }
#endif
  // Without CUDA in the build, there are no other devices.
  switch (arithmetic) {
    case Arithmetic::kInteger:
      return CheckedTable<host::kIntegerLaunchers>();
    case Arithmetic::kFma:
      return CheckedTable<host::kFmaLaunchers>();
    case Arithmetic::kMixed:
      break;
  }
  return CheckedTable<host::kMixedLaunchers>();
}

}  // namespace cipherd::kernels
