#include "server/engine/key_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/failure_reason.h"

namespace cipherd::engine {
namespace {

base::Sha256Digest HashOf(const ckks::EvaluationKey& key) {
  return base::Sha256Of({key.data.data_as<const uint8_t>(), static_cast<size_t>(key.data.bytes())});
}

}  // namespace

int64_t KeyDescription::bytes() const {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count * static_cast<int64_t>(sizeof(uint64_t));
}

bool KeySetInfo::contains(const ckks::KeyId& key) const {
  const auto at = std::lower_bound(
      keys.begin(), keys.end(), key,
      [](const KeyDescription& description, const ckks::KeyId& id) { return description.id < id; });
  return at != keys.end() && at->id == key;
}

KeySetInfoRef DescribeKeySet(std::string tenant, std::string id, std::string context_id,
                             const ckks::KeySet& keys,
                             const std::map<ckks::KeyId, base::Sha256Digest>& digests) {
  auto info = std::make_shared<KeySetInfo>();
  info->tenant = std::move(tenant);
  info->id = std::move(id);
  info->context_id = std::move(context_id);
  for (const auto& [key_id, key] : keys) {
    const auto known = digests.find(key_id);
    info->keys.push_back({.id = key_id,
                          .shape = key.data.shape(),
                          .digest = known != digests.end() ? known->second : HashOf(key)});
    info->bytes += key.data.bytes();
  }
  return info;
}

absl::Status CheckKeysFit(const KeySetInfo& keys, const ckks::KeyLayout& layout,
                          std::string_view context_id) {
  if (keys.context_id != context_id) {
    return WithReason(absl::InvalidArgumentError(absl::StrCat(
                          "key_set_id: expected a key set of context ", std::string(context_id),
                          ", got one of context ", keys.context_id)),
                      FailureReason::kWrongContext);
  }
  for (const ckks::KeyId& id : layout.ids()) {
    if (!keys.contains(id)) {
      return WithReason(
          absl::FailedPreconditionError(absl::StrCat("key_set_id: the key set lacks the key ",
                                                     id.ToString(), " that the program reads")),
          FailureReason::kMissingKey);
    }
  }
  return absl::OkStatus();
}

absl::Status UnknownKeySet(std::string_view id) {
  return WithReason(absl::NotFoundError(absl::StrCat("unknown key set ", std::string(id))),
                    FailureReason::kUnknownKeySet);
}

absl::Status UnreadableKeySet() {
  return WithReason(absl::UnavailableError("the key set cannot be read from its file now"),
                    FailureReason::kUnavailable);
}

absl::Status KeyStoreStopping() {
  return WithReason(absl::UnavailableError("the daemon is shutting down"),
                    FailureReason::kUnavailable);
}

}  // namespace cipherd::engine
