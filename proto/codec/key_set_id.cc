#include "proto/codec/key_set_id.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "proto/codec/enum_codec.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/value_admission.h"

namespace cipherd::codec {
namespace {

constexpr char kDomainTag[] = "cipherd key set v1";  // hashed with its final zero byte

void HashLittleEndian(base::Sha256& hash, uint64_t word, int byte_count) {
  uint8_t bytes[8];
  for (int i = 0; i < byte_count; ++i) bytes[i] = static_cast<uint8_t>(word >> (8 * i));
  hash.Update(bytes, static_cast<size_t>(byte_count));
}

}  // namespace

KeySetIdBuilder::KeySetIdBuilder(std::string_view context_id_bytes)
    : context_id_bytes_(context_id_bytes) {}

bool KeySetIdBuilder::Add(const ckks::KeyId& id, const base::Sha256Digest& payload_digest) {
  return digests_.emplace(id, payload_digest).second;
}

base::Sha256Digest KeySetIdBuilder::Finish() const {
  base::Sha256 hash;
  hash.Update(kDomainTag, sizeof(kDomainTag));
  hash.Update(context_id_bytes_.data(), context_id_bytes_.size());
  HashLittleEndian(hash, digests_.size(), 4);
  for (const auto& [id, digest] : digests_) {
    HashLittleEndian(hash, static_cast<uint64_t>(internal::ToWire(id.type)), 1);
    HashLittleEndian(hash, static_cast<uint64_t>(id.rotation_step), 8);
    hash.Update(digest);
  }
  return hash.Finish();
}

absl::StatusOr<ckks::KeyId> KeyIdOf(const value::ExactValue& key, std::string_view path) {
  if (!kEvaluationKeyTypes.Contains(key.type)) {
    return internal::Mismatch(path, ".type", kEvaluationKeyTypes.ToString(),
                              value::ToString(key.type), v1::ERROR_REASON_SIGNATURE_MISMATCH);
  }
  if (key.type != value::ValueType::kRotationKey) return ckks::KeyId{key.type, 0};
  if (!key.metadata.rotation_step.has_value()) {
    return internal::Mismatch(path, ".rotation_step", "a number", "none");
  }
  return ckks::KeyId{key.type, *key.metadata.rotation_step};
}

absl::StatusOr<base::Sha256Digest> PayloadDigest(const value::ExactValue& key,
                                                 std::string_view path) {
  base::Sha256 hash;
  for (const auto& [name, tensor] : key.tensors) {
    if (!tensor.is_contiguous() || !tensor.placement().is_host()) {
      return internal::Mismatch(path, absl::StrCat(".", name), "a contiguous tensor on the host",
                                absl::StrCat("strides ", internal::ListOf(tensor.strides()), " on ",
                                             tensor.placement().ToString()));
    }
    hash.Update(tensor.data(), static_cast<size_t>(tensor.bytes()));
  }
  return hash.Finish();
}

}  // namespace cipherd::codec
