#include "server/engine/key_store.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "server/engine/failure_reason.h"

namespace cipherd::engine {
namespace {

absl::Status UnknownKeySet(std::string_view id) {
  return WithReason(absl::NotFoundError(absl::StrCat("unknown key set ", std::string(id))),
                    FailureReason::kUnknownKeySet);
}

}  // namespace

absl::StatusOr<value::Tensor> KeyUpload::Allocate(value::DType dtype, std::vector<int64_t> shape) {
  const std::optional<int64_t> count = base::CheckedElementCount(shape);
  const int64_t available = charge_.bytes() - allocated_bytes_;
  if (!count.has_value() || *count > available / value::ElementBytes(dtype)) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("key set: a key is larger than the ", available,
                                                  " bytes that are left of those declared")),
        FailureReason::kLimitExceeded);
  }
  absl::StatusOr<value::Tensor> tensor =
      value::Tensor::AllocatePinned(store_->device_, dtype, std::move(shape));
  if (tensor.ok()) allocated_bytes_ += tensor->bytes();
  return tensor;
}

KeyStore::KeyStore(runtime::Device& device, const Options& options,
                   std::function<void(const StoredKeySet&)> on_drop)
    : device_(device),
      options_(options),
      on_drop_(std::move(on_drop)),
      budget_("key sets in host memory", options.budget_bytes) {}

absl::StatusOr<KeyUpload> KeyStore::Reserve(std::string_view tenant, int64_t total_bytes) {
  if (total_bytes < 0 || total_bytes > options_.max_set_bytes) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("key set of ", total_bytes,
                                                  " bytes: the limit is ", options_.max_set_bytes)),
        FailureReason::kLimitExceeded);
  }
  absl::StatusOr<ByteBudget::Charge> charge = budget_.Reserve(total_bytes);
  if (!charge.ok()) return charge.status();
  return KeyUpload(this, std::string(tenant), *std::move(charge));
}

KeyStore::Committed KeyStore::Commit(KeyUpload upload, std::string id, std::string context_id,
                                     ckks::KeySet keys) {
  auto set = std::make_shared<StoredKeySet>();
  set->tenant = upload.tenant_;
  set->id = std::move(id);
  set->context_id = std::move(context_id);
  set->keys = std::move(keys);
  set->bytes = upload.charge_.bytes();
  set->charge = std::move(upload.charge_);

  absl::MutexLock lock(&mu_);
  const auto [it, inserted] = sets_.try_emplace({set->tenant, set->id}, set);
  return {it->second, !inserted};
}

absl::StatusOr<KeySetRef> KeyStore::Find(std::string_view tenant, std::string_view id) const {
  absl::MutexLock lock(&mu_);
  const auto it = sets_.find({std::string(tenant), std::string(id)});
  if (it == sets_.end()) return UnknownKeySet(id);
  return it->second;
}

absl::Status KeyStore::Drop(std::string_view tenant, std::string_view id) {
  KeySetRef dropped;
  {
    absl::MutexLock lock(&mu_);
    const auto it = sets_.find({std::string(tenant), std::string(id)});
    if (it == sets_.end()) return UnknownKeySet(id);
    dropped = std::move(it->second);
    sets_.erase(it);
  }
  dropped->dropped.store(true);
  if (on_drop_) on_drop_(*dropped);
  return absl::OkStatus();
}

size_t KeyStore::set_count() const {
  absl::MutexLock lock(&mu_);
  return sets_.size();
}

absl::Status CheckKeysFit(const StoredKeySet& keys, const ckks::KeyLayout& layout,
                          std::string_view context_id) {
  if (keys.context_id != context_id) {
    return WithReason(absl::InvalidArgumentError(absl::StrCat(
                          "key_set_id: expected a key set of context ", std::string(context_id),
                          ", got one of context ", keys.context_id)),
                      FailureReason::kWrongContext);
  }
  for (const ckks::KeyId& id : layout.ids()) {
    if (!keys.keys.contains(id)) {
      return WithReason(
          absl::FailedPreconditionError(absl::StrCat("key_set_id: the key set lacks the key ",
                                                     id.ToString(), " that the program reads")),
          FailureReason::kMissingKey);
    }
  }
  return absl::OkStatus();
}

}  // namespace cipherd::engine
