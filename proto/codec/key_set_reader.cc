#include "proto/codec/key_set_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/key_set.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/value_admission.h"

namespace cipherd::codec {
namespace {

using internal::AboveLimit;
using internal::Mismatch;

constexpr v1::ErrorReason kProtocol = v1::ERROR_REASON_PROTOCOL;

}  // namespace

absl::StatusOr<KeySetReader> KeySetReader::Create(const v1::KeySetHeader& header,
                                                  std::span<const KnownContextPtr> contexts,
                                                  const WireLimits& limits) {
  if (header.total_bytes() > limits.max_key_set_bytes) {
    return AboveLimit("header", ".total_bytes", limits.max_key_set_bytes, header.total_bytes());
  }
  if (header.key_count() > static_cast<uint32_t>(limits.max_keys_per_set)) {
    return AboveLimit("header", ".key_count", static_cast<uint64_t>(limits.max_keys_per_set),
                      header.key_count());
  }
  if (header.key_count() == 0) return Mismatch("header", ".key_count", "at least 1", "0");
  CIPHERD_ASSIGN_OR_RETURN(KnownContextPtr context,
                           RequireContext(contexts, header.context_id(), "header.context_id"));
  // All keys of a context are of one size.
  const auto key_bytes = static_cast<uint64_t>(ckks::EvaluationKeyBytes(context->parameters()));
  if (header.total_bytes() != key_bytes * header.key_count()) {
    return Mismatch("header", ".total_bytes",
                    absl::StrCat(key_bytes * header.key_count(), " for ", header.key_count(),
                                 " keys of ", key_bytes),
                    absl::StrCat(header.total_bytes()));
  }
  return KeySetReader(std::move(context), header.key_count(), header.total_bytes(), limits);
}

KeySetReader::KeySetReader(KnownContextPtr context, uint32_t key_count, uint64_t total_bytes,
                           const WireLimits& limits)
    : context_(std::move(context)),
      key_count_(key_count),
      total_bytes_(total_bytes),
      remaining_bytes_(total_bytes),
      limits_(limits) {}

absl::Status KeySetReader::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return status_;
}

absl::Status KeySetReader::Read(const v1::PutKeysRequest& message,
                                const TensorAllocator& allocate) {
  switch (message.part_case()) {
    case v1::PutKeysRequest::kKey:
      return BeginKey(message.key(), allocate);
    case v1::PutKeysRequest::kChunk:
      return Write(std::span(reinterpret_cast<const uint8_t*>(message.chunk().data()),
                             message.chunk().size()));
    case v1::PutKeysRequest::kHeader:
      return Fail(
          Mismatch("header", "", "a key or a chunk after the header", "another header", kProtocol));
    case v1::PutKeysRequest::PART_NOT_SET:
      break;
  }
  return Fail(Mismatch(current_path(), "", "a key or a chunk", "an empty message", kProtocol));
}

absl::Status KeySetReader::BeginKey(const v1::ExactValue& description,
                                    const TensorAllocator& allocate) {
  CIPHERD_RETURN_IF_ERROR(status_);
  return Fail(Admit(description, allocate));
}

absl::Status KeySetReader::Admit(const v1::ExactValue& description,
                                 const TensorAllocator& allocate) {
  const std::string path = current_path();
  CIPHERD_RETURN_IF_ERROR(RefuseSecretKey(description.type(), path));
  if (current_.has_value()) {
    return Mismatch(path, "", "the rest of its payload", "the next key", kProtocol);
  }
  if (keys_.size() == key_count_) {
    return Mismatch(path, "", absl::StrCat(key_count_, " keys, as declared"), "one more",
                    kProtocol);
  }
  const KnownContextPtr contexts[] = {context_};
  CIPHERD_ASSIGN_OR_RETURN(
      AdmittedValue admitted,
      AdmitValue(description, contexts, kEvaluationKeyTypes, remaining_bytes_, limits_, path));
  CIPHERD_ASSIGN_OR_RETURN(const ckks::KeyId id, KeyIdOf(admitted.description, path));
  if (!ids_.insert(id).second) {
    return Mismatch(path, "", "a key that is not in the set yet",
                    absl::StrCat(id.ToString(), " again"));
  }
  CIPHERD_ASSIGN_OR_RETURN(
      PayloadReader payload,
      PayloadReader::Allocate(AdmittedTree::FromValue(std::move(admitted), path), allocate));
  current_.emplace(KeyInProgress{id, std::move(payload), base::Sha256()});
  return absl::OkStatus();
}

absl::Status KeySetReader::Write(std::span<const uint8_t> chunk) {
  CIPHERD_RETURN_IF_ERROR(status_);
  return Fail(Append(chunk));
}

absl::Status KeySetReader::Append(std::span<const uint8_t> chunk) {
  const std::string path = current_path();
  if (!current_.has_value()) {
    return Mismatch(path, "", "the description of a key", "a chunk", kProtocol);
  }
  if (chunk.empty()) {
    return Mismatch(path, ".chunk", "at least 1 byte", "0", kProtocol);
  }
  if (chunk.size() > limits_.max_chunk_bytes) {
    return AboveLimit(path, ".chunk", limits_.max_chunk_bytes, chunk.size());
  }
  CIPHERD_RETURN_IF_ERROR(current_->payload.Write(chunk));
  current_->hash.Update(chunk);
  remaining_bytes_ -= chunk.size();
  if (current_->payload.remaining_bytes() > 0) return absl::OkStatus();
  return EndKey();
}

absl::Status KeySetReader::EndKey() {
  KeyInProgress key = *std::exchange(current_, std::nullopt);
  CIPHERD_ASSIGN_OR_RETURN(value::ValueTree tree, std::move(key.payload).Finish());
  keys_.push_back({key.id, tree.exact_value(), key.hash.Finish()});
  return absl::OkStatus();
}

absl::StatusOr<KeySet> KeySetReader::Finish() && {
  CIPHERD_RETURN_IF_ERROR(status_);
  if (current_.has_value() || keys_.size() != key_count_) {
    return Mismatch(current_path(), "",
                    absl::StrCat(total_bytes_, " bytes in ", key_count_, " keys, as declared"),
                    absl::StrCat("the end after ", total_bytes_ - remaining_bytes_));
  }
  KeySet set;
  set.context_id = context_->id();
  set.keys = std::move(keys_);
  set.payload_bytes = total_bytes_;
  std::sort(set.keys.begin(), set.keys.end(),
            [](const KeySet::Key& a, const KeySet::Key& b) { return a.id < b.id; });
  KeySetIdBuilder id(context_->id_bytes());
  for (const KeySet::Key& key : set.keys) id.Add(key.id, key.payload_digest);
  set.id = base::ToHex(id.Finish());
  return set;
}

}  // namespace cipherd::codec
