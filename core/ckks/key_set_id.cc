#include "core/ckks/key_set_id.h"

namespace cipherd::ckks {
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

bool KeySetIdBuilder::Add(const KeyId& id, const base::Sha256Digest& payload_digest) {
  return digests_.emplace(id, payload_digest).second;
}

base::Sha256Digest KeySetIdBuilder::Finish() const {
  base::Sha256 hash;
  hash.Update(kDomainTag, sizeof(kDomainTag));
  hash.Update(context_id_bytes_.data(), context_id_bytes_.size());
  HashLittleEndian(hash, digests_.size(), 4);
  for (const auto& [id, digest] : digests_) {
    HashLittleEndian(hash, KeyTypeNumber(id.type), 1);
    HashLittleEndian(hash, static_cast<uint64_t>(id.rotation_step), 8);
    hash.Update(digest);
  }
  return hash.Finish();
}

}  // namespace cipherd::ckks
