#include "core/ckks/evaluator_checks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/value_checks.h"

namespace cipherd::ckks::internal {
namespace {

template <typename... Parts>
absl::Status Refuse(const Operation& operation, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(operation.name), ": ", parts...));
}

template <typename Operand>
absl::Status CheckForm(const Operation& operation, std::string_view role, const Operand& a,
                       size_t leading, value::ModulusBasis basis) {
  const DeviceContext& context = operation.context;
  const ContextParameters& parameters = context.parameters();
  const std::string name(role);
  if (&operation.stream.device() != &context.device()) {
    return Refuse(operation, "expected a stream of ", context.device().id().ToString(),
                  ", the device of the context, got stream ", operation.stream.name(), " of ",
                  operation.stream.device().id().ToString());
  }
  if (a.depth < 0 || a.depth > parameters.max_depth()) {
    return Refuse(operation, name, ": depth: expected 0 to ", parameters.max_depth(), ", got ",
                  a.depth);
  }
  const int limb_count = parameters.active_q_count(a.depth) +
                         (basis == value::ModulusBasis::kQP ? parameters.p_count() : 0);
  const value::Tensor& data = a.data;
  const std::vector<int64_t>& shape = data.shape();
  if (data.dtype() != value::DType::kUint64 || !data.is_contiguous() ||
      shape.size() < leading + 2 || data.element_count() == 0 ||
      shape.back() != parameters.ring_degree() || shape[shape.size() - 2] != limb_count) {
    return Refuse(operation, name, ": data: expected contiguous uint64 [",
                  leading == 1 ? "component, " : "", "batch…, ", limb_count, ", ",
                  parameters.ring_degree(), "] at depth ", a.depth, ", got ",
                  std::string(value::ToString(data.dtype())), " ", ListOf(shape));
  }
  if (data.placement() != value::Placement::On(context.device())) {
    return Refuse(operation, name, ": data: expected memory of ", context.device().id().ToString(),
                  ", got ", data.placement().ToString(), "; upload it first");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOperand(const Operation& operation, std::string_view role, const Ciphertext& a) {
  CIPHERD_RETURN_IF_ERROR(CheckForm(operation, role, a, 1, value::ModulusBasis::kQ));
  if (a.component_count() != 2 && a.component_count() != 3) {
    return Refuse(operation, std::string(role), ": components: expected 2 or 3, got ",
                  a.component_count());
  }
  return absl::OkStatus();
}

absl::Status CheckOperand(const Operation& operation, std::string_view role, const Plaintext& a,
                          value::ModulusBasis basis) {
  if (a.basis != basis) {
    return Refuse(operation, std::string(role), ": basis: expected ",
                  std::string(value::ToString(basis)), ", got ",
                  std::string(value::ToString(a.basis)), "; encode it for that (Encoder)");
  }
  return CheckForm(operation, role, a, 0, basis);
}

absl::Status CheckNtt(const Operation& operation, std::string_view role,
                      value::PolynomialDomain domain, std::string_view mend) {
  if (domain == value::PolynomialDomain::kNtt) return absl::OkStatus();
  return Refuse(operation, std::string(role), ": domain: expected ntt, got ",
                std::string(value::ToString(domain)), "; ", std::string(mend));
}

absl::Status CheckComponents(const Operation& operation, std::string_view role, const Ciphertext& a,
                             int expected, std::string_view mend) {
  if (a.component_count() == expected) return absl::OkStatus();
  return Refuse(operation, std::string(role), ": components: expected ", expected, ", got ",
                a.component_count(), "; ", std::string(mend));
}

absl::Status CheckSameDepth(const Operation& operation, int a, int b) {
  if (a == b) return absl::OkStatus();
  return Refuse(operation, "depths differ: a has ", a, ", b has ", b, "; bring ", a < b ? "a" : "b",
                " to depth ", std::max(a, b), " (DropToDepth, or Rescale)");
}

absl::Status CheckSameDomain(const Operation& operation, value::PolynomialDomain a,
                             value::PolynomialDomain b) {
  if (a == b) return absl::OkStatus();
  return Refuse(operation, "domains differ: a is ", std::string(value::ToString(a)), ", b is ",
                std::string(value::ToString(b)), "; convert one (ToNtt or ToCoefficient)");
}

absl::Status CheckSameScale(const Operation& operation, double a, double b) {
  if (std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b)) return absl::OkStatus();
  return Refuse(operation, "scales differ: a has ", ExactText(a), ", b has ", ExactText(b),
                "; rescale (Rescale) or encode to equal scales");
}

absl::Status CheckProductScale(const Operation& operation, double a, double b) {
  if (std::isfinite(a * b) && a * b > 0) return absl::OkStatus();
  return Refuse(operation, "the product of scales ", ExactText(a), " and ", ExactText(b),
                " is not a finite number above 0; rescale (Rescale) before");
}

absl::Status CheckSameBatch(const Operation& operation, const Ciphertext& a, const Ciphertext& b) {
  if (BatchAxes(a) == BatchAxes(b)) return absl::OkStatus();
  return Refuse(operation, "batch axes differ: a has ", ListOf(BatchAxes(a)), ", b has ",
                ListOf(BatchAxes(b)), "; batch both alike");
}

absl::Status CheckPlainBatch(const Operation& operation, const Ciphertext& a, const Plaintext& b) {
  const std::vector<int64_t>& shape = b.data.shape();
  const std::vector<int64_t> axes(shape.begin(), shape.end() - 2);
  if (axes.empty() || axes == BatchAxes(a)) return absl::OkStatus();
  return Refuse(operation, "batch axes differ: a has ", ListOf(BatchAxes(a)), ", b has ",
                ListOf(axes), "; batch both alike, or use an unbatched plaintext");
}

std::vector<int64_t> BatchAxes(const Ciphertext& a) {
  const std::vector<int64_t>& shape = a.data.shape();
  return {shape.begin() + 1, shape.end() - 2};
}

std::vector<int64_t> ShapeLike(const Ciphertext& a, int64_t leading, int64_t limb_count) {
  std::vector<int64_t> shape = a.data.shape();
  shape.front() = leading;
  shape[shape.size() - 2] = limb_count;
  return shape;
}

absl::StatusOr<value::Tensor> AllocateLike(const Ciphertext& a, int64_t leading, int64_t limb_count,
                                           runtime::Stream& stream) {
  return value::Tensor::AllocateOn(stream, value::DType::kUint64,
                                   ShapeLike(a, leading, limb_count));
}

kernels::PolyView Polynomials(const value::Tensor& data) {
  const std::vector<int64_t>& shape = data.shape();
  kernels::PolyView view;
  view.data = data.data_as<uint64_t>();
  view.outer_stride = shape[shape.size() - 2] * shape.back();
  view.outer_count = data.element_count() / view.outer_stride;
  return view;
}

kernels::PolyView Components(const value::Tensor& data, int64_t first, int64_t count) {
  kernels::PolyView view = Polynomials(data);
  const int64_t batch_count = view.outer_count / data.shape()[0];
  view.data += first * batch_count * view.outer_stride;
  view.outer_count = count * batch_count;
  return view;
}

kernels::PolyView FromLimb(kernels::PolyView view, int first, const DeviceContext& context) {
  view.data += first * context.parameters().ring_degree();
  return view;
}

}  // namespace cipherd::ckks::internal
