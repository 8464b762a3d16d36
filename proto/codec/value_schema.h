// What each type of value consists of on the wire: fields of metadata, and the tensor "data" with
// its axes. Internal to the codec; proto/WIRE_FORMAT.md has the same table in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/value/exact_value.h"
#include "core/value/tensor.h"

namespace cipherd::codec::internal {

// Name of the only tensor of every value of schema version 1.
inline constexpr char kDataName[] = "data";

// The axes before [limb, coefficient].
enum class LeadingAxes : uint8_t {
  kBatch,           // batch…
  kComponentBatch,  // component 2 or 3, batch…
  kPair,            // 2
  kDigitPair,       // digit, 2
};

// Which primes the limbs belong to.
enum class LimbPrimes : uint8_t {
  kNone,     // no limb axis: elements are numbers, not residues
  kAtDepth,  // the active primes of Q at the value's depth
  kQ,
  kQP,
};

struct ValueSchema {
  // Present fields of metadata, by the names that ValueMetadata::ToFields gives them, sorted.
  std::vector<std::string> fields;
  std::vector<value::DType> dtypes;
  LeadingAxes leading = LeadingAxes::kBatch;
  LimbPrimes limbs = LimbPrimes::kNone;
  // The domain that residues must be in; absent: either.
  std::optional<value::PolynomialDomain> domain = std::nullopt;
  // The last axis counts slots, 1 to S; else coefficients, N.
  bool slots = false;

  // Least number of dimensions, and whether batch axes may make it more.
  int min_rank() const;
  bool has_batch() const {
    return leading == LeadingAxes::kBatch || leading == LeadingAxes::kComponentBatch;
  }
  bool is_residues() const { return limbs != LimbPrimes::kNone; }
};

// Of a type and, for plaintexts, a representation. Null where this build has no such value:
// compressed plaintexts, secret keys, plaintexts without representation.
const ValueSchema* FindValueSchema(
    value::ValueType type,
    const std::optional<value::PlaintextRepresentation>& plaintext_representation);

}  // namespace cipherd::codec::internal
