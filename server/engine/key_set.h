// A tenant's key set: what it is, which stays known while its bytes move between tiers, and the
// bytes in host memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/base/sha256.h"
#include "core/ckks/evaluation_keys.h"
#include "core/ckks/key_set.h"
#include "server/engine/byte_budget.h"

namespace cipherd::engine {

// One key of a set: uint64 words.
struct KeyDescription {
  ckks::KeyId id;
  std::vector<int64_t> shape;
  // Of its bytes.
  base::Sha256Digest digest{};

  int64_t bytes() const;
};

// Immutable but for `dropped`. One object from upload to drop, whichever tiers the set is in, so
// that its address stands for the set.
struct KeySetInfo {
  std::string tenant;
  // 64 hexadecimal digits each.
  std::string id;
  std::string context_id;
  // Sorted by id, no two the same.
  std::vector<KeyDescription> keys;
  int64_t bytes = 0;
  // Set when it has become unknown; it must not stay resident anywhere once nobody reads it.
  mutable std::atomic<bool> dropped = false;

  bool contains(const ckks::KeyId& key) const;
};
using KeySetInfoRef = std::shared_ptr<const KeySetInfo>;

// Its bytes in host memory; a reference keeps them there.
struct StoredKeySet {
  KeySetInfoRef info;
  // Given back after the bytes.
  ByteBudget::Charge charge;
  // Pinned host tensors.
  ckks::KeySet keys;
};
using KeySetRef = std::shared_ptr<const StoredKeySet>;

// `digests` of the keys' bytes; those that are missing are computed.
KeySetInfoRef DescribeKeySet(std::string tenant, std::string id, std::string context_id,
                             const ckks::KeySet& keys,
                             const std::map<ckks::KeyId, base::Sha256Digest>& digests);

// FailedPrecondition naming the first key of `layout` that the set lacks (missing key), or
// InvalidArgument where it is of another context than `context_id` (wrong context).
absl::Status CheckKeysFit(const KeySetInfo& keys, const ckks::KeyLayout& layout,
                          std::string_view context_id);

// NotFound, in the same words whether the set is another tenant's or nobody's.
absl::Status UnknownKeySet(std::string_view id);
// Unavailable: its file is there but cannot be read now; the store takes nothing more.
absl::Status UnreadableKeySet();
absl::Status KeyStoreStopping();

}  // namespace cipherd::engine
