#include "server/engine/key_residency.h"

#include <vector>

#include "core/base/status_macros.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {

KeyResidency::Pin& KeyResidency::Pin::operator=(Pin&& other) noexcept {
  if (this != &other) {
    Release();
    residency_ = std::exchange(other.residency_, nullptr);
    entry_ = std::exchange(other.entry_, nullptr);
  }
  return *this;
}

const ckks::KeySet& KeyResidency::Pin::device_keys() const { return entry_->device_keys; }
const runtime::Event& KeyResidency::Pin::loaded_event() const { return *entry_->loaded; }

void KeyResidency::Pin::Release() {
  if (KeyResidency* residency = std::exchange(residency_, nullptr)) {
    residency->Unpin(std::exchange(entry_, nullptr));
  }
}

KeyResidency::KeyResidency(runtime::Device& device, int64_t budget_bytes,
                           std::function<void()> on_release)
    : device_(device), budget_bytes_(budget_bytes), on_release_(std::move(on_release)) {
  stats_.budget_bytes = budget_bytes;
}

KeyResidency::~KeyResidency() {
  absl::MutexLock lock(&mu_);
  if (lru_.size() != entries_.size()) {
    spdlog::error("key residency: {} of {} key sets are still pinned",
                  entries_.size() - lru_.size(), entries_.size());
  }
}

std::optional<KeyResidency::Pin> KeyResidency::TryPin(const KeySetRef& keys) {
  // Destroyed after the lock has gone: what they hold goes back to the device's pool.
  std::vector<std::unique_ptr<Entry>> evicted;
  absl::MutexLock lock(&mu_);
  const KeySetInfo& info = *keys->info;
  if (const auto it = entries_.find(&info); it != entries_.end()) {
    Entry& entry = *it->second;
    if (entry.pins++ == 0) {
      lru_.erase(entry.lru_position);
      entry.host = keys;
    }
    ++stats_.hits;
    return Pin(this, &entry);
  }
  int64_t evictable_bytes = 0;
  for (const Entry* entry : lru_) evictable_bytes += entry->info->bytes;
  if (stats_.used_bytes - evictable_bytes + info.bytes > budget_bytes_) {
    ++stats_.refusals;
    return std::nullopt;
  }
  while (stats_.used_bytes + info.bytes > budget_bytes_) {
    evicted.push_back(Remove(lru_.front()));
    ++stats_.evictions;
  }
  auto entry = std::make_unique<Entry>();
  entry->info = keys->info;
  entry->host = keys;
  entry->pins = 1;
  stats_.used_bytes += info.bytes;
  Entry* const raw = entry.get();
  entries_.emplace(&info, std::move(entry));
  return Pin(this, raw);
}

absl::Status KeyResidency::EnsureLoaded(Pin& pin, runtime::Stream& stream) {
  Entry& entry = *pin.entry_;
  absl::MutexLock load_lock(&entry.load_mu);
  if (entry.loaded != nullptr) return absl::OkStatus();
  ckks::KeySet device_keys;
  for (const auto& [id, key] : entry.host->keys) {
    CIPHERD_ASSIGN_OR_RETURN(ckks::EvaluationKey resident, ckks::UploadKey(key, stream));
    key.data.storage()->RecordUse(stream);
    device_keys.emplace(id, std::move(resident));
  }
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<runtime::Event> loaded, device_.CreateEvent());
  CIPHERD_RETURN_IF_ERROR(stream.Record(*loaded));
  entry.device_keys = std::move(device_keys);
  entry.loaded = std::move(loaded);
  absl::MutexLock lock(&mu_);
  ++stats_.loads;
  return absl::OkStatus();
}

void KeyResidency::Forget(const KeySetInfo& keys) {
  std::unique_ptr<Entry> removed;
  absl::MutexLock lock(&mu_);
  const auto it = entries_.find(&keys);
  if (it != entries_.end() && it->second->pins == 0) removed = Remove(it->second.get());
}

void KeyResidency::Unpin(Entry* entry) {
  {
    std::unique_ptr<Entry> removed;
    KeySetRef host;
    absl::MutexLock lock(&mu_);
    if (--entry->pins == 0) {
      entry->lru_position = lru_.insert(lru_.end(), entry);
      host = std::move(entry->host);
      if (entry->info->dropped.load()) removed = Remove(entry);
    }
  }
  if (on_release_) on_release_();
}

std::unique_ptr<KeyResidency::Entry> KeyResidency::Remove(Entry* entry) {
  lru_.erase(entry->lru_position);
  stats_.used_bytes -= entry->info->bytes;
  const auto it = entries_.find(entry->info.get());
  std::unique_ptr<Entry> removed = std::move(it->second);
  entries_.erase(it);
  return removed;
}

KeyResidency::Stats KeyResidency::stats() const {
  absl::MutexLock lock(&mu_);
  return stats_;
}

}  // namespace cipherd::engine
