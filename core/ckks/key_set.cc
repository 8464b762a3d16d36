#include "core/ckks/key_set.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/value_checks.h"

namespace cipherd::ckks {
namespace {

using value::ExactValue;
using value::Tensor;
using value::ValueType;

std::vector<int64_t> KeyShape(const ContextParameters& parameters) {
  return {static_cast<int64_t>(parameters.digits.size()), 2,
          parameters.q_count() + parameters.p_count(), parameters.ring_degree()};
}

bool IsEvaluationKey(ValueType type) {
  return type == ValueType::kRelinearizationKey || type == ValueType::kRotationKey ||
         type == ValueType::kConjugationKey;
}

// Galois element of a key, none for relinearization.
std::optional<int64_t> GaloisElementOf(const KeyId& id, const ContextParameters& parameters) {
  if (id.type == ValueType::kRotationKey) return parameters.RotationElement(id.rotation_step);
  if (id.type == ValueType::kConjugationKey) return parameters.ConjugationElement();
  return std::nullopt;
}

}  // namespace

absl::StatusOr<EvaluationKey> EvaluationKey::FromValue(const ExactValue& value,
                                                       std::string_view path,
                                                       const ContextParameters& parameters,
                                                       std::string_view context_id) {
  if (!IsEvaluationKey(value.type)) {
    return internal::Mismatch(path, "type", "RelinearizationKey, RotationKey or ConjugationKey",
                              value::ToString(value.type));
  }
  CIPHERD_RETURN_IF_ERROR(internal::CheckIdentity(value, path, value.type, context_id));
  EvaluationKey key;
  key.id.type = value.type;
  const value::ValueMetadata& metadata = value.metadata;
  if (value.type == ValueType::kRotationKey) {
    const int64_t slots = parameters.slot_count();
    if (!metadata.rotation_step.has_value() || *metadata.rotation_step < 1 ||
        *metadata.rotation_step >= slots) {
      return internal::Mismatch(
          path, "rotation_step", absl::StrCat("1 to ", slots - 1),
          metadata.rotation_step.has_value() ? absl::StrCat(*metadata.rotation_step) : "none");
    }
    key.id.rotation_step = *metadata.rotation_step;
  } else {
    CIPHERD_RETURN_IF_ERROR(
        internal::CheckNumber(path, "rotation_step", metadata.rotation_step, std::nullopt));
  }
  CIPHERD_RETURN_IF_ERROR(internal::CheckNumber(path, "galois_element", metadata.galois_element,
                                                GaloisElementOf(key.id, parameters)));
  CIPHERD_RETURN_IF_ERROR(internal::CheckNumber(path, "digit_count", metadata.digit_count,
                                                static_cast<int64_t>(parameters.digits.size())));
  CIPHERD_RETURN_IF_ERROR(
      internal::CheckPrimeIds(value, path, parameters.ActivePrimeIds(0, /*with_p=*/true)));
  CIPHERD_ASSIGN_OR_RETURN(key.data, internal::CheckData(value, path));
  if (key.data.shape() != KeyShape(parameters)) {
    return internal::Mismatch(path, "data.shape", internal::ListOf(KeyShape(parameters)),
                              internal::ListOf(key.data.shape()));
  }
  CIPHERD_ASSIGN_OR_RETURN(const value::PolynomialDomain domain,
                           internal::CheckDomain(value, path));
  if (domain != value::PolynomialDomain::kNtt) {
    return internal::Mismatch(path, "domain", "ntt", value::ToString(domain));
  }
  CIPHERD_RETURN_IF_ERROR(internal::CheckResidues(value, path, value::ModulusBasis::kQP));
  return key;
}

ExactValue EvaluationKey::ToValue(const ContextParameters& parameters,
                                  std::string_view context_id) const {
  ExactValue value;
  value.type = id.type;
  value.context_id = std::string(context_id);
  value.metadata.prime_ids = parameters.ActivePrimeIds(0, /*with_p=*/true);
  value.metadata.domain = value::PolynomialDomain::kNtt;
  value.metadata.basis = value::ModulusBasis::kQP;
  value.metadata.residue_representation = value::ResidueRepresentation::kStandard;
  value.metadata.digit_count = static_cast<int64_t>(parameters.digits.size());
  if (id.type == ValueType::kRotationKey) value.metadata.rotation_step = id.rotation_step;
  value.metadata.galois_element = GaloisElementOf(id, parameters);
  value.tensors.emplace_back("data", data);
  return value;
}

int64_t EvaluationKeyBytes(const ContextParameters& parameters) {
  int64_t words = 1;
  for (int64_t dimension : KeyShape(parameters)) words *= dimension;
  return words * static_cast<int64_t>(sizeof(uint64_t));
}

absl::StatusOr<EvaluationKey> UploadKey(const EvaluationKey& key, runtime::Stream& stream) {
  EvaluationKey uploaded{.id = key.id, .data = {}};
  CIPHERD_ASSIGN_OR_RETURN(uploaded.data,
                           Tensor::AllocateOn(stream, key.data.dtype(), key.data.shape()));
  CIPHERD_RETURN_IF_ERROR(stream.CopyAsync(uploaded.data.data(), key.data.data(),
                                           static_cast<size_t>(key.data.bytes())));
  return uploaded;
}

absl::StatusOr<std::vector<uint64_t>> KeyAddresses(const KeyLayout& layout, const KeySet& keys) {
  std::vector<uint64_t> addresses;
  for (const KeyId& id : layout.ids()) {
    const auto found = keys.find(id);
    if (found == keys.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("key ", id.ToString(), " is missing: the key set has ", keys.size(),
                       " keys, ", layout.size(), " are needed"));
    }
    addresses.push_back(reinterpret_cast<uint64_t>(found->second.data.data()));
  }
  if (addresses.empty()) addresses.push_back(0);
  return addresses;
}

absl::StatusOr<KeyTable> MakeKeyTable(const KeyLayout& layout, const KeySet& keys,
                                      runtime::Stream& stream) {
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<uint64_t> addresses, KeyAddresses(layout, keys));
  KeyTable table{.layout = layout, .addresses = {}};
  CIPHERD_ASSIGN_OR_RETURN(
      table.addresses,
      Tensor::AllocateOn(stream, value::DType::kUint64, {static_cast<int64_t>(addresses.size())}));
  const absl::Status copied = stream.CopyAsync(table.addresses.data(), addresses.data(),
                                               addresses.size() * sizeof(uint64_t));
  // The addresses must outlive the copy, also where it could not be enqueued as a whole.
  const absl::Status finished = stream.Synchronize();
  CIPHERD_RETURN_IF_ERROR(copied);
  CIPHERD_RETURN_IF_ERROR(finished);
  return table;
}

}  // namespace cipherd::ckks
