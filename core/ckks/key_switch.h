// Hybrid key switching and the division by dropped limbs, in steps that operations share. Internal
// to the layer; operands are checked by the callers, NTT domain throughout.
//
// A key switch of a polynomial c at a depth (Han, Ki, eprint 2019/688, section 3): ModUp cuts c
// into digits c_d = [c]_{D_d}, D_d the product of the active primes of digit d, and raises each to
// all active primes of QP; the inner product with the key gives (u_0, u_1) over QP with u_0 + u_1 ·
// s = P · c · s' + noise, because sum_d c_d · F_d = c modulo every active prime of Q; ModDown
// divides by P.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/device_context.h"
#include "core/ckks/evaluation_keys.h"
#include "core/kernels/kernel_table.h"
#include "core/runtime/stream.h"
#include "core/value/tensor.h"

namespace cipherd::ckks::internal {

// Where a launch at a depth finds the key `id`. FailedPrecondition where the table lacks it.
absl::StatusOr<kernels::KeySlot> KeySlotOf(const DeviceContext& context, int depth, const KeyId& id,
                                           const KeyTable& keys);

// Digits [active digit, batch…, active QP limbs, N] of component `component` of `a`.
absl::StatusOr<value::Tensor> ModUp(const DeviceContext& context, const Ciphertext& a,
                                    int component, runtime::Stream& stream);

// Writes to `out`, [2, batch…, active QP limbs, N], the inner product of the digits of a ciphertext
// like `like`, sent through the automorphism of `galois_element`, with the key `id`.
// FailedPrecondition where the table lacks it.
absl::Status KeyInnerProduct(const DeviceContext& context, const Ciphertext& like,
                             const value::Tensor& digits, uint32_t galois_element, const KeyId& id,
                             const KeyTable& keys, const value::Tensor& out,
                             runtime::Stream& stream);

// [component, batch…, remaining limbs, N]: every polynomial of `data`, with its addend, divided by
// the primes that `drop` drops, rounded to the nearest integer.
absl::StatusOr<value::Tensor> DivideByDropped(const DeviceContext& context, const LimbDrop& drop,
                                              const value::Tensor& data,
                                              const kernels::DropAddend& addend,
                                              runtime::Stream& stream);

// KeyInnerProduct of the digits of component `component` of `a`: [2, batch…, active QP limbs, N].
absl::StatusOr<value::Tensor> SwitchKey(const DeviceContext& context, const Ciphertext& a,
                                        int component, uint32_t galois_element, const KeyId& id,
                                        const KeyTable& keys, runtime::Stream& stream);

}  // namespace cipherd::ckks::internal
