// Every structural check on one exact value that a peer announced, before a byte of it is read.
//
// The order is that of the security list, cheapest first; the first failure is the one reported:
//   0. a secret key is refused by its type, whatever else it holds     SECRET_KEY_REFUSED
//   1. counts and byte caps                                            LIMIT_EXCEEDED
//   2. type; schema version; which fields and tensors; dtype; encoding SIGNATURE_MISMATCH (a type
//      that is not asked for), UNSUPPORTED (versions, encodings to come), else MALFORMED_VALUE
//   3. context id                                                      WRONG_CONTEXT
//   4. ring degree, prime ids and their order
//   5. depth, and that it is the one of the prime ids
//   6. component count; for keys, digits
//   7. dims × element size = bytes
//   8. domain, basis and representation together
//   9. scale: finite, at least 1, below the product of the active primes
//  10. for keys: digit count, rotation step, Galois element
// Residues below their primes follow when the payload is there (payload_reader.h); duplicates
// within a key set where the set is known (key_set_reader.h); a caller's right to a key set in the
// engine.
//
// Unless named above, the reason is MALFORMED_VALUE. Touches no state, allocates only the
// description. Thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cipherd/v1/value.pb.h"
#include "core/value/exact_value.h"
#include "proto/codec/known_context.h"
#include "proto/codec/tensor_plan.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::codec {

// A set of value types.
class ValueTypeSet {
 public:
  constexpr ValueTypeSet(std::initializer_list<value::ValueType> types) {
    for (value::ValueType type : types) bits_ |= Bit(type);
  }
  constexpr bool Contains(value::ValueType type) const { return (bits_ & Bit(type)) != 0; }
  // "Ciphertext or Plaintext".
  std::string ToString() const;

 private:
  static constexpr uint32_t Bit(value::ValueType type) {
    return uint32_t{1} << static_cast<uint32_t>(type);
  }
  uint32_t bits_ = 0;
};

// What an evaluation takes and returns; what a key set consists of.
inline constexpr ValueTypeSet kOperandTypes = {value::ValueType::kCiphertext,
                                               value::ValueType::kPlaintext};
inline constexpr ValueTypeSet kEvaluationKeyTypes = {value::ValueType::kRelinearizationKey,
                                                     value::ValueType::kRotationKey,
                                                     value::ValueType::kConjugationKey};

struct AdmittedValue {
  // All state; the tensors have names but no storage yet.
  value::ExactValue description;
  // One for each tensor, in order.
  std::vector<TensorPlan> tensors;
  uint64_t payload_bytes = 0;
};

// Refuses a secret key, naming `path`. Looks at the type alone.
absl::Status RefuseSecretKey(v1::ValueType type, std::string_view path);

// `max_bytes` caps the payload of this value.
absl::StatusOr<AdmittedValue> AdmitValue(const v1::ExactValue& message,
                                         std::span<const KnownContextPtr> contexts,
                                         ValueTypeSet types, uint64_t max_bytes,
                                         const WireLimits& limits, std::string_view path);

}  // namespace cipherd::codec
