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
  if (!pinned_.empty()) {
    spdlog::error("key residency: {} of {} key sets are still pinned", pinned_.size(),
                  entries_.size());
  }
  for (const std::unique_ptr<Entry>& entry : evicted_) Wipe(*entry);
  for (Entry* entry : lru_) Wipe(*entry);
  // A process that ends next does not wait for what it has enqueued.
  absl::MutexLock wipe_lock(&wipe_mu_);
  if (wiping_ != nullptr) wiping_->Synchronize().IgnoreError();
}

std::optional<KeyResidency::Pin> KeyResidency::TryPin(const KeySetRef& keys) {
  // Let go after the lock.
  std::vector<KeySetRef> copied;
  absl::MutexLock lock(&mu_);
  LetGoOfCopied(copied);
  const KeySetInfo& info = *keys->info;
  if (const auto it = entries_.find(&info); it != entries_.end()) {
    Entry& entry = *it->second;
    if (entry.pins++ == 0) {
      pinned_.splice(pinned_.end(), lru_, entry.position);
      pinned_bytes_ += info.bytes;
      if (!entry.is_copied) entry.host = keys;
    }
    ++stats_.hits;
    return Pin(this, &entry);
  }
  if (!HasRoomFor(info.bytes)) {
    ++stats_.refusals;
    return std::nullopt;
  }
  while (stats_.used_bytes + info.bytes > budget_bytes_) {
    evicted_.push_back(Remove(lru_.front()));
    ++stats_.evictions;
  }
  auto entry = std::make_unique<Entry>();
  entry->info = keys->info;
  entry->host = keys;
  entry->pins = 1;
  stats_.used_bytes += info.bytes;
  pinned_bytes_ += info.bytes;
  Entry* const raw = entry.get();
  raw->position = pinned_.insert(pinned_.end(), raw);
  entries_.emplace(&info, std::move(entry));
  return Pin(this, raw);
}

KeyResidency::Standing KeyResidency::StandingOf(const KeySetInfo& keys) const {
  absl::MutexLock lock(&mu_);
  const auto it = entries_.find(&keys);
  const bool has_entry = it != entries_.end();
  // Only the holder of a pin loads; one may have been given up without.
  const bool is_here = has_entry && (it->second->pins > 0 || it->second->loaded != nullptr);
  return {.is_here = is_here,
          .has_room = has_entry || HasRoomFor(keys.bytes),
          .used_bytes = stats_.used_bytes};
}

absl::Status KeyResidency::EnsureLoaded(Pin& pin, runtime::Stream& stream) {
  Entry& entry = *pin.entry_;
  absl::MutexLock load_lock(&entry.load_mu);
  if (entry.loaded != nullptr) return absl::OkStatus();
  std::vector<std::unique_ptr<Entry>> evicted;
  {
    absl::MutexLock lock(&mu_);
    evicted.swap(evicted_);
  }
  for (const std::unique_ptr<Entry>& left : evicted) Wipe(*left, stream);
  absl::Status loaded = Load(entry, stream);
  if (absl::IsResourceExhausted(loaded) && !evicted.empty()) {
    // Memory that came from another stream is free once it is wiped.
    CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
    loaded = Load(entry, stream);
  }
  return loaded;
}

absl::Status KeyResidency::Load(Entry& entry, runtime::Stream& stream) {
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
  {
    absl::MutexLock lock(&mu_);
    const auto it = entries_.find(&keys);
    if (it != entries_.end() && it->second->pins == 0) removed = Remove(it->second.get());
  }
  if (removed != nullptr) Wipe(*removed);
}

void KeyResidency::Unpin(Entry* entry) {
  {
    std::unique_ptr<Entry> removed;
    // Let go after the lock.
    KeySetRef host;
    {
      absl::MutexLock lock(&mu_);
      if (--entry->pins == 0) {
        lru_.splice(lru_.end(), pinned_, entry->position);
        pinned_bytes_ -= entry->info->bytes;
        if (IsCopied(*entry)) {
          host = std::move(entry->host);
        } else {
          has_uncopied_ = true;
        }
        if (entry->info->dropped.load()) removed = Remove(entry);
      }
    }
    if (removed != nullptr) Wipe(*removed);
  }
  if (on_release_) on_release_();
}

std::unique_ptr<KeyResidency::Entry> KeyResidency::Remove(Entry* entry) {
  lru_.erase(entry->position);
  stats_.used_bytes -= entry->info->bytes;
  const auto it = entries_.find(entry->info.get());
  std::unique_ptr<Entry> removed = std::move(it->second);
  entries_.erase(it);
  return removed;
}

bool KeyResidency::IsCopied(Entry& entry) {
  if (entry.is_copied || entry.loaded == nullptr) return true;
  const absl::StatusOr<bool> is_done = entry.loaded->Query();
  // A device that failed copies no more.
  entry.is_copied = !is_done.ok() || *is_done;
  return entry.is_copied;
}

void KeyResidency::LetGoOfCopied(std::vector<KeySetRef>& host) {
  if (!std::exchange(has_uncopied_, false)) return;
  for (Entry* entry : lru_) {
    if (entry->host == nullptr) continue;
    if (IsCopied(*entry)) {
      host.push_back(std::move(entry->host));
    } else {
      has_uncopied_ = true;
    }
  }
}

void KeyResidency::Wipe(Entry& entry, runtime::Stream& stream) {
  for (const auto& [id, key] : entry.device_keys) {
    // A pin may have been given up before what it had loaded was used.
    absl::Status wiped = stream.Wait(*entry.loaded);
    if (wiped.ok()) wiped = stream.FillAsync(key.data.data(), 0, key.data.bytes());
    if (!wiped.ok()) {
      spdlog::warn("key set {} is not wiped from the device: {}", entry.info->id,
                   std::string(wiped.message()));
      break;
    }
    key.data.storage()->RecordUse(stream);
  }
  entry.device_keys.clear();
}

void KeyResidency::Wipe(Entry& entry) {
  if (entry.device_keys.empty()) return;
  absl::MutexLock lock(&wipe_mu_);
  if (wiping_ == nullptr) {
    absl::StatusOr<std::unique_ptr<runtime::Stream>> made = device_.CreateStream("key wiping");
    if (!made.ok()) {
      spdlog::warn("key set {} is not wiped from the device: {}", entry.info->id,
                   std::string(made.status().message()));
      return;
    }
    wiping_ = *std::move(made);
  }
  Wipe(entry, *wiping_);
}

KeyResidency::Stats KeyResidency::stats() const {
  absl::MutexLock lock(&mu_);
  return stats_;
}

}  // namespace cipherd::engine
