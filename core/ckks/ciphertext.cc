#include "core/ckks/ciphertext.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/value_checks.h"

namespace cipherd::ckks {
namespace {

using value::ExactValue;
using value::Tensor;

// Batch axes of a shape that has `leading` axes before them and [limb, coefficient] after.
int64_t BatchCount(const std::vector<int64_t>& shape, size_t leading) {
  int64_t count = 1;
  for (size_t i = leading; i + 2 < shape.size(); ++i) count *= shape[i];
  return count;
}

// The last two axes are [limb, coefficient] at `depth`, and no axis is empty.
absl::Status CheckShape(const Tensor& data, std::string_view path, size_t leading, int depth,
                        const ContextParameters& parameters) {
  const std::vector<int64_t>& shape = data.shape();
  const std::string tail = absl::StrCat("batch…, ", parameters.active_q_count(depth), ", ",
                                        parameters.ring_degree(), "]");
  const std::string expected = absl::StrCat(leading == 1 ? "[2 or 3, " : "[", tail);
  bool fits = shape.size() >= leading + 2 && shape.back() == parameters.ring_degree() &&
              shape[shape.size() - 2] == parameters.active_q_count(depth);
  if (fits && leading == 1) fits = shape[0] == 2 || shape[0] == 3;
  for (int64_t dimension : shape) fits = fits && dimension > 0;
  if (!fits) return internal::Mismatch(path, "data.shape", expected, internal::ListOf(shape));
  return absl::OkStatus();
}

value::ValueMetadata CommonMetadata(int depth, double scale, value::PolynomialDomain domain,
                                    value::ModulusBasis basis,
                                    const ContextParameters& parameters) {
  value::ValueMetadata metadata;
  metadata.depth = depth;
  metadata.scale = scale;
  metadata.prime_ids = parameters.ActivePrimeIds(depth, basis == value::ModulusBasis::kQP);
  metadata.domain = domain;
  metadata.basis = basis;
  metadata.residue_representation = value::ResidueRepresentation::kStandard;
  return metadata;
}

// The checks that ciphertexts and plaintexts share, in the order of the fields' cost.
template <typename T>
absl::StatusOr<T> FromCheckedValue(const ExactValue& value, std::string_view path,
                                   value::ValueType type, size_t leading,
                                   const ContextParameters& parameters,
                                   std::string_view context_id) {
  CIPHERD_RETURN_IF_ERROR(internal::CheckIdentity(value, path, type, context_id));
  T result;
  CIPHERD_ASSIGN_OR_RETURN(result.depth, internal::CheckDepth(value, path, parameters));
  CIPHERD_RETURN_IF_ERROR(
      internal::CheckPrimeIds(value, path, parameters.ActivePrimeIds(result.depth, false)));
  CIPHERD_ASSIGN_OR_RETURN(result.data, internal::CheckData(value, path));
  CIPHERD_RETURN_IF_ERROR(CheckShape(result.data, path, leading, result.depth, parameters));
  CIPHERD_ASSIGN_OR_RETURN(result.domain, internal::CheckDomain(value, path));
  CIPHERD_RETURN_IF_ERROR(internal::CheckResidues(value, path, value::ModulusBasis::kQ));
  CIPHERD_ASSIGN_OR_RETURN(result.scale, internal::CheckScale(value, path));
  return result;
}

}  // namespace

int64_t Ciphertext::batch_count() const { return BatchCount(data.shape(), 1); }
int64_t Plaintext::batch_count() const { return BatchCount(data.shape(), 0); }

absl::StatusOr<Ciphertext> Ciphertext::FromValue(const ExactValue& value, std::string_view path,
                                                 const ContextParameters& parameters,
                                                 std::string_view context_id) {
  return FromCheckedValue<Ciphertext>(value, path, value::ValueType::kCiphertext, 1, parameters,
                                      context_id);
}

ExactValue Ciphertext::ToValue(const ContextParameters& parameters,
                               std::string_view context_id) const {
  ExactValue value;
  value.type = value::ValueType::kCiphertext;
  value.context_id = std::string(context_id);
  value.metadata = CommonMetadata(depth, scale, domain, value::ModulusBasis::kQ, parameters);
  value.tensors.emplace_back("data", data);
  return value;
}

absl::StatusOr<Plaintext> Plaintext::FromValue(const ExactValue& value, std::string_view path,
                                               const ContextParameters& parameters,
                                               std::string_view context_id) {
  CIPHERD_ASSIGN_OR_RETURN(Plaintext result,
                           FromCheckedValue<Plaintext>(value, path, value::ValueType::kPlaintext, 0,
                                                       parameters, context_id));
  constexpr auto kRns = value::PlaintextRepresentation::kRns;
  const std::optional<value::PlaintextRepresentation>& actual =
      value.metadata.plaintext_representation;
  if (actual != kRns) {
    return internal::Mismatch(path, "plaintext_representation", value::ToString(kRns),
                              actual.has_value() ? value::ToString(*actual) : "none");
  }
  return result;
}

ExactValue Plaintext::ToValue(const ContextParameters& parameters,
                              std::string_view context_id) const {
  ExactValue value;
  value.type = value::ValueType::kPlaintext;
  value.context_id = std::string(context_id);
  value.metadata = CommonMetadata(depth, scale, domain, basis, parameters);
  value.metadata.plaintext_representation = value::PlaintextRepresentation::kRns;
  value.tensors.emplace_back("data", data);
  return value;
}

}  // namespace cipherd::ckks
