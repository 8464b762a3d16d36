// What the evaluator's operations share: operand checks with messages that name the operation which
// mends a mismatch, and views of operands for launchers. Internal to the layer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/device_context.h"
#include "core/kernels/kernel_table.h"
#include "core/runtime/stream.h"
#include "core/value/tensor.h"

namespace cipherd::ckks::internal {

// An operation in messages: "Add: ciphertext a: …".
struct Operation {
  const DeviceContext& context;
  std::string_view name;
  runtime::Stream& stream;
};

// The operand is well formed for the context (depth, components, shape, dtype, contiguous), and it
// and the stream are on the device of the context; a plaintext is of `basis`.
absl::Status CheckOperand(const Operation& operation, std::string_view role, const Ciphertext& a);
absl::Status CheckOperand(const Operation& operation, std::string_view role, const Plaintext& a,
                          value::ModulusBasis basis = value::ModulusBasis::kQ);

// The operand is in the NTT domain. `mend` is what to call otherwise.
absl::Status CheckNtt(const Operation& operation, std::string_view role,
                      value::PolynomialDomain domain, std::string_view mend);
absl::Status CheckComponents(const Operation& operation, std::string_view role, const Ciphertext& a,
                             int expected, std::string_view mend);

absl::Status CheckSameDepth(const Operation& operation, int a, int b);
absl::Status CheckSameDomain(const Operation& operation, value::PolynomialDomain a,
                             value::PolynomialDomain b);
// Equal as binary64.
absl::Status CheckSameScale(const Operation& operation, double a, double b);
// A product's scale is finite.
absl::Status CheckProductScale(const Operation& operation, double a, double b);
// Equal batch axes.
absl::Status CheckSameBatch(const Operation& operation, const Ciphertext& a, const Ciphertext& b);
// Equal batch axes, or `b` has none.
absl::Status CheckPlainBatch(const Operation& operation, const Ciphertext& a, const Plaintext& b);

// Batch axes of a ciphertext.
std::vector<int64_t> BatchAxes(const Ciphertext& a);
// [leading, batch…, limbs, N].
std::vector<int64_t> ShapeLike(const Ciphertext& a, int64_t leading, int64_t limb_count);

// A new tensor of that shape on the stream.
absl::StatusOr<value::Tensor> AllocateLike(const Ciphertext& a, int64_t leading, int64_t limb_count,
                                           runtime::Stream& stream);

// Components [first, first + count) of a tensor [component, batch…, limb, N] as count · batch
// polynomials.
kernels::PolyView Components(const value::Tensor& data, int64_t first, int64_t count);
inline kernels::PolyView AllComponents(const value::Tensor& data) {
  return Components(data, 0, data.shape()[0]);
}
// All polynomials of a tensor [batch…, limb, N].
kernels::PolyView Polynomials(const value::Tensor& data);
// The same polynomials from limb `first` on.
kernels::PolyView FromLimb(kernels::PolyView view, int first, const DeviceContext& context);

}  // namespace cipherd::ckks::internal
