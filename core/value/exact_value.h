// A cryptographic value with the exact state that gives its bytes their meaning.
//
// Axes, always in this order, of the tensor called "data":
//   ciphertext   [component 2|3, batch…, limb, coefficient]
//   plaintext    [batch…, limb, coefficient] (rns), [batch…, coefficient] (integer_coefficients,
//                approximate_coefficients) or [batch…, slot] (slots)
//   keys         [digit, 2, limb, coefficient]
//   public key   [2, limb, coefficient]
//   secret key   [limb, coefficient]
//
// This layer carries state; what states are lawful is for ckks (core/ckks) and the codec to say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/value/tensor.h"

namespace cipherd::value {

enum class ValueType : uint8_t {
  kCiphertext,
  kPlaintext,
  kCompressedPlaintext,
  kPublicKey,
  kRelinearizationKey,
  kRotationKey,
  kConjugationKey,
  kKeySwitchKey,
  kSecretKey,  // clients only: the daemon refuses it by type
};
enum class PolynomialDomain : uint8_t { kCoefficient, kNtt };
enum class ModulusBasis : uint8_t { kQ, kQP };
enum class ResidueRepresentation : uint8_t { kStandard, kMontgomery };
enum class PlaintextRepresentation : uint8_t {
  kSlots,
  kIntegerCoefficients,
  kApproximateCoefficients,
  kRns,
};

// "Ciphertext", "RotationKey", ... ; "ntt"; "QP"; "standard"; "integer_coefficients".
std::string_view ToString(ValueType type);
std::string_view ToString(PolynomialDomain domain);
std::string_view ToString(ModulusBasis basis);
std::string_view ToString(ResidueRepresentation representation);
std::string_view ToString(PlaintextRepresentation representation);
inline std::ostream& operator<<(std::ostream& out, ValueType type) { return out << ToString(type); }
inline std::ostream& operator<<(std::ostream& out, PolynomialDomain domain) {
  return out << ToString(domain);
}
inline std::ostream& operator<<(std::ostream& out, ModulusBasis basis) {
  return out << ToString(basis);
}
inline std::ostream& operator<<(std::ostream& out, ResidueRepresentation representation) {
  return out << ToString(representation);
}
inline std::ostream& operator<<(std::ostream& out, PlaintextRepresentation representation) {
  return out << ToString(representation);
}

// Version of the schema of exact values that this build reads and writes.
inline constexpr uint32_t kValueSchemaVersion = 1;

// One field of metadata as data. A double is compared by its binary64 bits.
using MetadataField = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;

// Equality with doubles by their bits: 0.0 differs from -0.0, and a NaN equals itself.
bool SameField(const MetadataField& a, const MetadataField& b);
// "3", "[0, 1]", "ntt"; a double with 17 significant digits, so that unequal ones print
// differently.
std::string FieldToString(const MetadataField& field);

// State besides the tensors. A field that does not apply to a type is absent.
struct ValueMetadata {
  std::optional<int64_t> depth;                   // rescaling groups consumed, 0 for a fresh value
  std::optional<double> scale;                    // > 0, finite
  std::optional<std::vector<int64_t>> prime_ids;  // strictly increasing, one per limb
  std::optional<PolynomialDomain> domain;
  std::optional<ModulusBasis> basis;
  std::optional<ResidueRepresentation> residue_representation;
  std::optional<PlaintextRepresentation> plaintext_representation;
  std::optional<int64_t> rotation_step;   // slot j receives slot (j + step) mod S
  std::optional<int64_t> galois_element;  // odd, < 2N
  std::optional<int64_t> digit_count;     // of a key

  bool operator==(const ValueMetadata&) const;  // scales by bits

  // Present fields ordered by key, for signatures and messages.
  std::map<std::string, MetadataField> ToFields() const;
};

struct ExactValue {
  ValueType type = ValueType::kCiphertext;
  uint32_t schema_version = kValueSchemaVersion;
  // 64 hexadecimal digits (core/ckks/context_parameters.h).
  std::optional<std::string> context_id;
  ValueMetadata metadata;
  // Ordered by name, names unique.
  std::vector<std::pair<std::string, Tensor>> tensors;

  // The tensor called `name`, or null.
  const Tensor* FindTensor(std::string_view name) const;
};

}  // namespace cipherd::value
