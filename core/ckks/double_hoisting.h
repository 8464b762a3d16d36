// Linear transforms whose baby steps stay over QP (Bossuat, Mouchet, Troncoso-Pastoriza, Hubaux,
// "Efficient Bootstrapping for Approximate Homomorphic Encryption with Non-Sparse Keys", eprint
// 2020/1203, sections 4 and 5: double hoisting). Internal to the layer.
//
// With P·c_0 added to component 0, the inner product of a key with the digits of c_1 is P times the
// rotated ciphertext, modulo QP, without any division. So
//   v_g = sum_b d_{g+b} ⊙ P · rotate_b(a)                   over QP, diagonals modulo QP
//   P · M a = sum_g (component 0 of v_g, rotated, + key switch of component 1 of v_g / P)
// takes one division of one polynomial for each giant step g != 0, whose digits the next ModUp
// needs, and one of two polynomials at the end; v_0 and all components 0 wait for that one over QP.
//
// Range: a slot sum of messages that fits Q at scale a.scale · diagonal.scale is P times itself
// here, and so fits QP alike. Noise: as with one hoisting, each baby step has the noise of its key
// times its diagonal. What a division rounds, up to 1/2 · (1 + |s|) for each coefficient, was
// multiplied by the diagonals after it in every baby step there; here it follows the products, once
// for each giant step and once at the end (section 4.3 there), so that the error is not greater.
//
// Results are canonical and the same words on every device, but not those of one hoisting.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/bsgs_plan.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/device_context.h"
#include "core/ckks/evaluation_keys.h"
#include "core/kernels/rotation_sums.h"
#include "core/runtime/stream.h"
#include "core/value/tensor.h"

namespace cipherd::ckks::internal {

// Makes `rotation`, one of `launch`, that by `step`, not 0 mod S. FailedPrecondition where the
// table lacks its key.
absl::Status SetRotation(const DeviceContext& context, int depth, int64_t step,
                         const KeyTable& keys, kernels::RotationSums::Rotation& rotation,
                         kernels::RotationSums& launch);

// One evaluation. Operands and keys are checked by the caller; it refers to them.
class DoubleHoistedTransform {
 public:
  DoubleHoistedTransform(const DeviceContext& context, const BsgsPlan& plan,
                         const std::map<int64_t, Plaintext>& diagonals, const Ciphertext& a,
                         const KeyTable& keys, runtime::Stream& stream);

  // [2, batch…, active Q limbs, N].
  absl::StatusOr<value::Tensor> Run();

 private:
  using Giant = std::pair<const int64_t, std::vector<BsgsPlan::Term>>;
  // As many giant steps as one launch sums.
  using GiantGroup = std::vector<const Giant*>;

  // v_g of every step of a group: [2, step, batch…, active QP limbs, N].
  absl::StatusOr<value::Tensor> BabySums(const GiantGroup& group);
  // Adds the rotated `sums` of a group to total_.
  absl::Status AddGiants(const GiantGroup& group, const value::Tensor& sums);
  // Digits of component 1 of `sums` from step `first` on, divided by P:
  // [active digit, step, batch…, active QP limbs, N].
  absl::StatusOr<value::Tensor> GiantDigits(const value::Tensor& sums, int64_t first);

  const DeviceContext& context_;
  const BsgsPlan& plan_;
  const std::map<int64_t, Plaintext>& diagonals_;
  const Ciphertext& a_;
  const KeyTable& keys_;
  runtime::Stream& stream_;
  const int64_t batch_;
  const int qp_count_;
  std::optional<value::Tensor> digits_;  // of a's component 1; none without baby steps
  std::optional<value::Tensor> total_;   // [2, batch…, active QP limbs, N]
};

}  // namespace cipherd::ckks::internal
