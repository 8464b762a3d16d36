// PublicKey: between the typed key and its exact value.
#include <string>

#include "core/base/status_macros.h"
#include "core/ckks/value_checks.h"
#include "core/secret/key_generator.h"

namespace cipherd::secret {

absl::StatusOr<PublicKey> PublicKey::FromValue(const value::ExactValue& value,
                                               std::string_view path,
                                               const ckks::ContextParameters& parameters,
                                               std::string_view context_id) {
  namespace checks = ckks::internal;
  CIPHERD_RETURN_IF_ERROR(
      checks::CheckIdentity(value, path, value::ValueType::kPublicKey, context_id));
  CIPHERD_RETURN_IF_ERROR(
      checks::CheckPrimeIds(value, path, parameters.ActivePrimeIds(0, /*with_p=*/false)));
  PublicKey key;
  CIPHERD_ASSIGN_OR_RETURN(key.data, checks::CheckData(value, path));
  const std::vector<int64_t> shape = {2, parameters.q_count(), parameters.ring_degree()};
  if (key.data.shape() != shape) {
    return checks::Mismatch(path, "data.shape", checks::ListOf(shape),
                            checks::ListOf(key.data.shape()));
  }
  CIPHERD_ASSIGN_OR_RETURN(const value::PolynomialDomain domain, checks::CheckDomain(value, path));
  if (domain != value::PolynomialDomain::kNtt) {
    return checks::Mismatch(path, "domain", "ntt", value::ToString(domain));
  }
  CIPHERD_RETURN_IF_ERROR(checks::CheckResidues(value, path, value::ModulusBasis::kQ));
  return key;
}

value::ExactValue PublicKey::ToValue(const ckks::ContextParameters& parameters,
                                     std::string_view context_id) const {
  value::ExactValue value;
  value.type = value::ValueType::kPublicKey;
  value.context_id = std::string(context_id);
  value.metadata.prime_ids = parameters.ActivePrimeIds(0, /*with_p=*/false);
  value.metadata.domain = value::PolynomialDomain::kNtt;
  value.metadata.basis = value::ModulusBasis::kQ;
  value.metadata.residue_representation = value::ResidueRepresentation::kStandard;
  value.tensors.emplace_back("data", data);
  return value;
}

}  // namespace cipherd::secret
