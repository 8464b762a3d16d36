#include "core/secret/host_operand.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/ckks/value_checks.h"

namespace cipherd::secret::internal {

absl::Status CheckHostOperand(const value::Tensor& data, std::string_view role, size_t leading,
                              int depth, const ckks::ContextParameters& parameters) {
  const std::string name(role);
  if (depth < 0 || depth > parameters.max_depth()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".depth: expected 0 to ", parameters.max_depth(), ", got ", depth));
  }
  const std::vector<int64_t>& shape = data.shape();
  if (shape.size() < leading + 2 || shape.back() != parameters.ring_degree() ||
      shape[shape.size() - 2] != parameters.active_q_count(depth) || data.element_count() == 0 ||
      data.dtype() != value::DType::kUint64 || !data.is_contiguous()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ".data: expected contiguous uint64 [", leading == 1 ? "component, " : "", "batch…, ",
        parameters.active_q_count(depth), ", ", parameters.ring_degree(), "] at depth ", depth,
        ", got ", std::string(value::ToString(data.dtype())), " ", ckks::internal::ListOf(shape)));
  }
  if (!data.placement().is_host()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ".data: expected host memory, got ",
                                                   data.placement().ToString(),
                                                   "; copy it to the host first"));
  }
  return absl::OkStatus();
}

}  // namespace cipherd::secret::internal
