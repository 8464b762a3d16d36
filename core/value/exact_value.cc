#include "core/value/exact_value.h"

#include <bit>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace cipherd::value {

std::string_view ToString(ValueType type) {
  switch (type) {
    case ValueType::kCiphertext:
      return "Ciphertext";
    case ValueType::kPlaintext:
      return "Plaintext";
    case ValueType::kCompressedPlaintext:
      return "CompressedPlaintext";
    case ValueType::kPublicKey:
      return "PublicKey";
    case ValueType::kRelinearizationKey:
      return "RelinearizationKey";
    case ValueType::kRotationKey:
      return "RotationKey";
    case ValueType::kConjugationKey:
      return "ConjugationKey";
    case ValueType::kKeySwitchKey:
      return "KeySwitchKey";
    case ValueType::kSecretKey:
      return "SecretKey";
  }
  return "unknown type";
}

std::string_view ToString(PolynomialDomain domain) {
  switch (domain) {
    case PolynomialDomain::kCoefficient:
      return "coefficient";
    case PolynomialDomain::kNtt:
      return "ntt";
  }
  return "unknown domain";
}

std::string_view ToString(ModulusBasis basis) {
  switch (basis) {
    case ModulusBasis::kQ:
      return "Q";
    case ModulusBasis::kQP:
      return "QP";
  }
  return "unknown basis";
}

std::string_view ToString(ResidueRepresentation representation) {
  switch (representation) {
    case ResidueRepresentation::kStandard:
      return "standard";
    case ResidueRepresentation::kMontgomery:
      return "montgomery";
  }
  return "unknown residue representation";
}

std::string_view ToString(PlaintextRepresentation representation) {
  switch (representation) {
    case PlaintextRepresentation::kSlots:
      return "slots";
    case PlaintextRepresentation::kIntegerCoefficients:
      return "integer_coefficients";
    case PlaintextRepresentation::kApproximateCoefficients:
      return "approximate_coefficients";
    case PlaintextRepresentation::kRns:
      return "rns";
  }
  return "unknown plaintext representation";
}

bool SameField(const MetadataField& a, const MetadataField& b) {
  const double* a_double = std::get_if<double>(&a);
  const double* b_double = std::get_if<double>(&b);
  if (a_double != nullptr && b_double != nullptr) {
    return std::bit_cast<uint64_t>(*a_double) == std::bit_cast<uint64_t>(*b_double);
  }
  return a == b;
}

std::string FieldToString(const MetadataField& field) {
  return std::visit(
      [](const auto& content) -> std::string {
        using Content = std::decay_t<decltype(content)>;
        if constexpr (std::is_same_v<Content, bool>) {
          return content ? "true" : "false";
        } else if constexpr (std::is_same_v<Content, double>) {
          return absl::StrFormat("%.17g", content);
        } else if constexpr (std::is_same_v<Content, std::vector<int64_t>>) {
          return absl::StrCat("[", absl::StrJoin(content, ", "), "]");
        } else {
          return absl::StrCat(content);
        }
      },
      field);
}

bool ValueMetadata::operator==(const ValueMetadata& other) const {
  const bool same_scale = scale.has_value() == other.scale.has_value() &&
                          (!scale.has_value() || std::bit_cast<uint64_t>(*scale) ==
                                                     std::bit_cast<uint64_t>(*other.scale));
  return same_scale && depth == other.depth && prime_ids == other.prime_ids &&
         domain == other.domain && basis == other.basis &&
         residue_representation == other.residue_representation &&
         plaintext_representation == other.plaintext_representation &&
         rotation_step == other.rotation_step && galois_element == other.galois_element &&
         digit_count == other.digit_count;
}

std::map<std::string, MetadataField> ValueMetadata::ToFields() const {
  std::map<std::string, MetadataField> fields;
  auto add = [&fields](const char* key, const auto& field) {
    if (!field.has_value()) return;
    if constexpr (std::is_enum_v<std::decay_t<decltype(*field)>>) {
      fields.emplace(key, std::string(ToString(*field)));
    } else {
      fields.emplace(key, *field);
    }
  };
  add("depth", depth);
  add("scale", scale);
  add("prime_ids", prime_ids);
  add("domain", domain);
  add("basis", basis);
  add("residue_representation", residue_representation);
  add("plaintext_representation", plaintext_representation);
  add("rotation_step", rotation_step);
  add("galois_element", galois_element);
  add("digit_count", digit_count);
  return fields;
}

const Tensor* ExactValue::FindTensor(std::string_view name) const {
  for (const auto& [tensor_name, tensor] : tensors) {
    if (tensor_name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace cipherd::value
