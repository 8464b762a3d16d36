// Receives one key set: the header, then for each key its description and its payload.
//
//   CIPHERD_ASSIGN_OR_RETURN(KeySetReader reader, KeySetReader::Create(header, contexts, limits));
//   // Reserve reader.total_bytes() against quota and budget. Then, for each message of the stream:
//   CIPHERD_RETURN_IF_ERROR(reader.Read(message, PinnedTensors(device)));
//   CIPHERD_ASSIGN_OR_RETURN(KeySet keys, std::move(reader).Finish());
//
// States, by the messages that they take next:
//
//     kBetweenKeys --key--> kInKey --chunk--> kInKey
//          ^                   |
//          +--- last chunk ----+            any --error--> kFailed (stays; Finish gives the error)
//
// Each key's payload is hashed while it streams in. A failure leaves nothing behind but the memory
// that the reader holds. Threading: one thread at a time. Errors carry their reason: those of
// value_admission.h and payload_reader.h, LIMIT_EXCEEDED, PROTOCOL for messages out of order,
// MALFORMED_VALUE for a duplicate key, totals that do not add up, or an early end.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cipherd/v1/evaluation.pb.h"
#include "core/base/sha256.h"
#include "core/ckks/evaluation_keys.h"
#include "core/value/exact_value.h"
#include "proto/codec/key_set_id.h"
#include "proto/codec/known_context.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/tensor_plan.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::codec {

struct KeySet {
  // 64 hexadecimal digits each.
  std::string id;
  std::string context_id;
  struct Key {
    ckks::KeyId id;
    value::ExactValue value;
    base::Sha256Digest payload_digest;
  };
  // Sorted by id, no two the same.
  std::vector<Key> keys;
  uint64_t payload_bytes = 0;
};

class KeySetReader {
 public:
  // Checks the header: caps first, then the context. `contexts` are those of the loaded programs.
  static absl::StatusOr<KeySetReader> Create(const v1::KeySetHeader& header,
                                             std::span<const KnownContextPtr> contexts,
                                             const WireLimits& limits);

  KeySetReader(KeySetReader&&) = default;
  KeySetReader& operator=(KeySetReader&&) = default;

  const KnownContext& context() const { return *context_; }
  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t remaining_bytes() const { return remaining_bytes_; }
  uint32_t key_count() const { return key_count_; }
  // Those whose description has come; the last of them may lack bytes.
  uint32_t described_keys() const { return static_cast<uint32_t>(ids_.size()); }

  // The next message of the stream after the header: BeginKey or Write.
  absl::Status Read(const v1::PutKeysRequest& message, const TensorAllocator& allocate);

  // Admits the next key and allocates its memory. Key i of the stream is called "keys[i]".
  absl::Status BeginKey(const v1::ExactValue& description, const TensorAllocator& allocate);
  // The next bytes of the key: 1 to max_chunk_bytes, of this key alone.
  absl::Status Write(std::span<const uint8_t> chunk);

  // The set, once every key and byte has come.
  absl::StatusOr<KeySet> Finish() &&;

 private:
  KeySetReader(KnownContextPtr context, uint32_t key_count, uint64_t total_bytes,
               const WireLimits& limits);
  // Keeps the first error for good.
  absl::Status Fail(absl::Status status);
  // "keys[i]" of the key that is being read, or comes next.
  std::string current_path() const { return absl::StrCat("keys[", keys_.size(), "]"); }
  absl::Status Admit(const v1::ExactValue& description, const TensorAllocator& allocate);
  absl::Status Append(std::span<const uint8_t> chunk);
  absl::Status EndKey();

  KnownContextPtr context_;
  uint32_t key_count_;
  uint64_t total_bytes_;
  uint64_t remaining_bytes_;
  WireLimits limits_;

  absl::Status status_;
  std::vector<KeySet::Key> keys_;
  // Of keys_ and the key that is being read.
  std::set<ckks::KeyId> ids_;
  // Present in state kInKey.
  struct KeyInProgress {
    ckks::KeyId id;
    PayloadReader payload;
    base::Sha256 hash;
  };
  std::optional<KeyInProgress> current_;
};

}  // namespace cipherd::codec
