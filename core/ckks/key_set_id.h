// The identity of a key set: what its keys are and hold, whatever the order and encoding they came
// in.
//
//   KeySetIdBuilder builder(context.id_bytes());
//   builder.Add(KeyId::Relinearization(), payload_digest);
//   std::string id = base::ToHex(builder.Finish());
//
// SHA-256 over: "cipherd key set v1" and a zero byte; the 32 bytes of the context id; the number of
// keys (uint32); then for each key, sorted by KeyId, its type (uint8: 5 relinearization,
// 6 rotation, 7 conjugation), its rotation step (int64) and the SHA-256 of its payload in the
// canonical encoding. Integers are little-endian. tests/golden pins it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/base/sha256.h"
#include "core/ckks/evaluation_keys.h"

namespace cipherd::ckks {

// The number that stands for a key's type where it is hashed or stored; that of the wire, too.
constexpr uint8_t KeyTypeNumber(value::ValueType type) { return static_cast<uint8_t>(type) + 1; }
static_assert(KeyTypeNumber(value::ValueType::kRelinearizationKey) == 5);
static_assert(KeyTypeNumber(value::ValueType::kConjugationKey) == 7);

class KeySetIdBuilder {
 public:
  // Requires 32 bytes.
  explicit KeySetIdBuilder(std::string_view context_id_bytes);

  // False where the key is there already; then nothing changes.
  bool Add(const KeyId& id, const base::Sha256Digest& payload_digest);
  base::Sha256Digest Finish() const;

 private:
  std::string context_id_bytes_;
  std::map<KeyId, base::Sha256Digest> digests_;
};

}  // namespace cipherd::ckks
