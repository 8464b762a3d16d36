#include "proto/codec/value_schema.h"

#include <utility>

namespace cipherd::codec::internal {
namespace {

using value::DType;
using value::PlaintextRepresentation;
using value::PolynomialDomain;
using value::ValueType;

struct Schemas {
  ValueSchema ciphertext{
      .fields = {"basis", "depth", "domain", "prime_ids", "residue_representation", "scale"},
      .dtypes = {DType::kUint64},
      .leading = LeadingAxes::kComponentBatch,
      .limbs = LimbPrimes::kAtDepth};
  ValueSchema rns_plaintext{.fields = {"basis", "depth", "domain", "plaintext_representation",
                                       "prime_ids", "residue_representation", "scale"},
                            .dtypes = {DType::kUint64},
                            .leading = LeadingAxes::kBatch,
                            .limbs = LimbPrimes::kAtDepth};
  ValueSchema slots_plaintext{.fields = {"plaintext_representation"},
                              .dtypes = {DType::kFloat64, DType::kComplex128},
                              .slots = true};
  ValueSchema integer_plaintext{.fields = {"plaintext_representation", "scale"},
                                .dtypes = {DType::kInt64}};
  ValueSchema approximate_plaintext{.fields = {"plaintext_representation", "scale"},
                                    .dtypes = {DType::kFloat64}};
  ValueSchema public_key{.fields = {"basis", "domain", "prime_ids", "residue_representation"},
                         .dtypes = {DType::kUint64},
                         .leading = LeadingAxes::kPair,
                         .limbs = LimbPrimes::kQ,
                         .domain = PolynomialDomain::kNtt};
  // Relinearization, and key switching in general.
  ValueSchema switch_key =
      KeySchema({"basis", "digit_count", "domain", "prime_ids", "residue_representation"});
  ValueSchema rotation_key = KeySchema({"basis", "digit_count", "domain", "galois_element",
                                        "prime_ids", "residue_representation", "rotation_step"});
  ValueSchema conjugation_key = KeySchema(
      {"basis", "digit_count", "domain", "galois_element", "prime_ids", "residue_representation"});

  static ValueSchema KeySchema(std::vector<std::string> fields) {
    return {.fields = std::move(fields),
            .dtypes = {DType::kUint64},
            .leading = LeadingAxes::kDigitPair,
            .limbs = LimbPrimes::kQP,
            .domain = PolynomialDomain::kNtt};
  }
};

}  // namespace

int ValueSchema::min_rank() const {
  const int trailing = is_residues() ? 2 : 1;
  switch (leading) {
    case LeadingAxes::kBatch:
      return trailing;
    case LeadingAxes::kComponentBatch:
    case LeadingAxes::kPair:
      return trailing + 1;
    case LeadingAxes::kDigitPair:
      return trailing + 2;
  }
  return trailing;
}

const ValueSchema* FindValueSchema(
    ValueType type, const std::optional<PlaintextRepresentation>& plaintext_representation) {
  static const Schemas& schemas = *new Schemas;
  switch (type) {
    case ValueType::kCiphertext:
      return &schemas.ciphertext;
    case ValueType::kPlaintext:
      if (!plaintext_representation.has_value()) return nullptr;
      switch (*plaintext_representation) {
        case PlaintextRepresentation::kSlots:
          return &schemas.slots_plaintext;
        case PlaintextRepresentation::kIntegerCoefficients:
          return &schemas.integer_plaintext;
        case PlaintextRepresentation::kApproximateCoefficients:
          return &schemas.approximate_plaintext;
        case PlaintextRepresentation::kRns:
          return &schemas.rns_plaintext;
      }
      return nullptr;
    case ValueType::kPublicKey:
      return &schemas.public_key;
    case ValueType::kRelinearizationKey:
    case ValueType::kKeySwitchKey:
      return &schemas.switch_key;
    case ValueType::kRotationKey:
      return &schemas.rotation_key;
    case ValueType::kConjugationKey:
      return &schemas.conjugation_key;
    case ValueType::kCompressedPlaintext:
    case ValueType::kSecretKey:
      return nullptr;
  }
  return nullptr;
}

}  // namespace cipherd::codec::internal
