// The identity of a key set: what its keys are and hold, whatever the order and encoding they came
// in.
//
//   KeySetIdBuilder builder(context.id_bytes());
//   builder.Add(ckks::KeyId::Relinearization(), payload_digest);
//   std::string id = base::ToHex(builder.Finish());
//
// SHA-256 over: "cipherd key set v1" and a zero byte; the 32 bytes of the context id; the number of
// keys (uint32); then for each key, sorted by KeyId, its type (uint8, the number of ValueType on
// the wire), its rotation step (int64) and the SHA-256 of its payload in the canonical encoding.
// Integers are little-endian.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/base/sha256.h"
#include "core/ckks/evaluation_keys.h"
#include "core/value/exact_value.h"

namespace cipherd::codec {

class KeySetIdBuilder {
 public:
  // Requires 32 bytes.
  explicit KeySetIdBuilder(std::string_view context_id_bytes);

  // False where the key is there already; then nothing changes.
  bool Add(const ckks::KeyId& id, const base::Sha256Digest& payload_digest);
  base::Sha256Digest Finish() const;

 private:
  std::string context_id_bytes_;
  std::map<ckks::KeyId, base::Sha256Digest> digests_;
};

// Which key of a key set `key` is. InvalidArgument for a type that is no evaluation key, or a
// rotation key without its step.
absl::StatusOr<ckks::KeyId> KeyIdOf(const value::ExactValue& key, std::string_view path);

// SHA-256 of the payload of a key in the canonical encoding. InvalidArgument unless its tensors are
// contiguous and on the host.
absl::StatusOr<base::Sha256Digest> PayloadDigest(const value::ExactValue& key,
                                                 std::string_view path);

}  // namespace cipherd::codec
