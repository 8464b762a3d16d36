// The exact state of one cryptographic value, and the topology of its tensors.
//
//   CIPHERD_ASSIGN_OR_RETURN(ValueSignature signature, ValueSignature::FromValue(ciphertext));
//
// Two values with equal signatures can replace each other's payload without changing what their
// bytes mean: same type, schema, context, depth, scale (by its binary64 bits), primes, domain,
// basis, representations and rotation. Which key encrypted a ciphertext is not in here, and must be
// checked elsewhere. A plain value; thread-safe like one.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/execution/tensor_signature.h"
#include "core/value/exact_value.h"

namespace cipherd::execution {

struct ValueSignature {
  // "Ciphertext", "RotationKey", ...
  std::string type_name;
  uint32_t schema_version = value::kValueSchemaVersion;
  std::optional<std::string> context_id;
  // Present fields, ordered by key.
  std::vector<std::pair<std::string, value::MetadataField>> metadata;
  // Ordered by name.
  std::vector<std::pair<std::string, TensorSignature>> tensors;

  // InvalidArgument, naming `path`, for a value without tensors or with two of one name.
  static absl::StatusOr<ValueSignature> FromValue(const value::ExactValue& value,
                                                  std::string_view path = "value");

  // Doubles compare by their bits: 0.0 differs from -0.0, and a NaN equals itself.
  bool operator==(const ValueSignature& other) const;

  // OK where `actual` equals this; else InvalidArgument naming the first field that differs, as in
  // `source['x'].depth: expected 3, got 2`. Order: type, schema version, context, metadata by key,
  // tensors by name.
  absl::Status CheckSame(const ValueSignature& actual, std::string_view path) const;

  // "Ciphertext{schema_version=1, context_id=..., depth=0, ..., data: uint64[2, 3, 4096]}". Where
  // `multi_line`, one field a line, the fields indented by `indent` + 2 spaces.
  std::string ToString(bool multi_line = false, int indent = 0) const;

  template <typename H>
  friend H AbslHashValue(H state, const ValueSignature& signature) {
    state = H::combine(std::move(state), signature.type_name, signature.schema_version,
                       signature.context_id, signature.tensors, signature.metadata.size());
    for (const auto& [key, field] : signature.metadata) {
      state = H::combine(std::move(state), key, field.index());
      state = std::visit(
          [&state](const auto& content) {
            if constexpr (std::is_same_v<std::decay_t<decltype(content)>, double>) {
              return H::combine(std::move(state), std::bit_cast<uint64_t>(content));
            } else {
              return H::combine(std::move(state), content);
            }
          },
          field);
    }
    return state;
  }
};

inline std::ostream& operator<<(std::ostream& out, const ValueSignature& signature) {
  return out << signature.ToString();
}

}  // namespace cipherd::execution
