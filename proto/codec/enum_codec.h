// Enumerations between the wire and core. On the wire 0 means "not stated" and the numbers of core
// follow in the same order, which the assertions below pin at the ends. Internal to the codec.
#pragma once

#include <optional>

#include "cipherd/v1/context.pb.h"
#include "cipherd/v1/value.pb.h"
#include "core/ckks/context_parameters.h"
#include "core/value/exact_value.h"
#include "core/value/tensor.h"

namespace cipherd::codec::internal {

template <typename Core>
struct WireEnum;

#define CIPHERD_WIRE_ENUM(core, wire, last_core, last_wire)   \
  template <>                                                 \
  struct WireEnum<core> {                                     \
    using Type = wire;                                        \
    static constexpr int kLast = static_cast<int>(last_wire); \
  };                                                          \
  static_assert(static_cast<int>(last_core) + 1 == static_cast<int>(last_wire))

CIPHERD_WIRE_ENUM(value::DType, v1::DType, value::DType::kComplex128, v1::DTYPE_COMPLEX128);
CIPHERD_WIRE_ENUM(value::Layout, v1::Layout, value::Layout::kStrided, v1::LAYOUT_STRIDED);
CIPHERD_WIRE_ENUM(value::ValueType, v1::ValueType, value::ValueType::kSecretKey,
                  v1::VALUE_TYPE_SECRET_KEY);
CIPHERD_WIRE_ENUM(value::PolynomialDomain, v1::PolynomialDomain, value::PolynomialDomain::kNtt,
                  v1::POLYNOMIAL_DOMAIN_NTT);
CIPHERD_WIRE_ENUM(value::ModulusBasis, v1::ModulusBasis, value::ModulusBasis::kQP,
                  v1::MODULUS_BASIS_QP);
CIPHERD_WIRE_ENUM(value::ResidueRepresentation, v1::ResidueRepresentation,
                  value::ResidueRepresentation::kMontgomery, v1::RESIDUE_REPRESENTATION_MONTGOMERY);
CIPHERD_WIRE_ENUM(value::PlaintextRepresentation, v1::PlaintextRepresentation,
                  value::PlaintextRepresentation::kRns, v1::PLAINTEXT_REPRESENTATION_RNS);
CIPHERD_WIRE_ENUM(ckks::SecretDistribution, v1::SecretDistribution,
                  ckks::SecretDistribution::kUniformTernary,
                  v1::SECRET_DISTRIBUTION_UNIFORM_TERNARY);
#undef CIPHERD_WIRE_ENUM

template <typename Core>
typename WireEnum<Core>::Type ToWire(Core value) {
  return static_cast<typename WireEnum<Core>::Type>(static_cast<int>(value) + 1);
}

// Nothing for "not stated" and for numbers without a meaning (proto3 keeps any number).
template <typename Core>
std::optional<Core> FromWire(typename WireEnum<Core>::Type wire) {
  const int number = static_cast<int>(wire);
  if (number < 1 || number > WireEnum<Core>::kLast) return std::nullopt;
  return static_cast<Core>(number - 1);
}

}  // namespace cipherd::codec::internal
