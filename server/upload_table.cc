#include "server/upload_table.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/failure_reason.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

using engine::FailureReason;
using engine::WithReason;
using engine::WithRetryDelay;

constexpr absl::Duration kExpireInterval = absl::Seconds(1);
// The time that a stream takes to let go.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(50);
// Those remembered after their end included: the oldest of them makes room for a new one.
constexpr size_t kMaxUploadsOfATenant = 64;

absl::Status UnknownUpload() {
  return WithReason(absl::NotFoundError("unknown upload"), FailureReason::kUnknownUpload);
}

absl::Status StillReceived() {
  return WithRetryDelay(WithReason(absl::UnavailableError("another stream still has the upload"),
                                   FailureReason::kUnavailable),
                        kRetryDelay);
}

}  // namespace

UploadTable::UploadTable(absl::Duration keep, const base::Clock& clock)
    : keep_(keep),
      clock_(clock),
      thread_("uploads", {.interval = kExpireInterval, .run = [this] { Expire(); }}) {}

absl::StatusOr<std::optional<ReceivedKeys>> UploadTable::Begin(const Key& key,
                                                               uint64_t resume_bytes,
                                                               std::function<void()> cancel) {
  // Destroyed without the lock.
  std::optional<ReceivedKeys> given_up;
  absl::MutexLock lock(&mu_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) {
    if (resume_bytes > 0) return UnknownUpload();
    const OfTenant uploads = UploadsOf(key.tenant);
    if (uploads.count >= kMaxUploadsOfATenant) {
      const auto oldest = uploads.oldest_kept;
      if (oldest == entries_.end()) {
        return WithRetryDelay(
            WithReason(absl::ResourceExhaustedError(absl::StrCat(
                           "uploads of the tenant: ", kMaxUploadsOfATenant, " are under way")),
                       FailureReason::kOverloaded),
            keep_ / 2);
      }
      given_up = std::move(oldest->second.parked);
      entries_.erase(oldest);
    }
    entries_[key].cancel = std::move(cancel);
    return std::nullopt;
  }
  Entry& entry = it->second;
  if (entry.cancel) {
    entry.cancel();
    return StillReceived();
  }
  std::optional<ReceivedKeys> kept;
  if (resume_bytes > 0) {
    if (!entry.parked.has_value()) return UnknownUpload();
    if (entry.parked->received_bytes() != resume_bytes) {
      return absl::FailedPreconditionError(absl::StrCat("header.resume_bytes: expected the ",
                                                        entry.parked->received_bytes(),
                                                        " that have come, got ", resume_bytes));
    }
    kept = std::move(entry.parked);
  } else {
    given_up = std::move(entry.parked);
  }
  entry = Entry{.cancel = std::move(cancel)};
  return kept;
}

void UploadTable::Park(const Key& key, ReceivedKeys received) {
  absl::MutexLock lock(&mu_);
  Entry& entry = entries_[key];
  entry.cancel = nullptr;
  entry.parked = std::move(received);
  entry.expires_at = clock_.Now() + keep_;
}

void UploadTable::End(const Key& key, const std::string& key_set_id) {
  absl::MutexLock lock(&mu_);
  if (key_set_id.empty()) {
    entries_.erase(key);
    return;
  }
  Entry& entry = entries_[key];
  entry.cancel = nullptr;
  entry.key_set_id = key_set_id;
  entry.expires_at = clock_.Now() + keep_;
}

absl::StatusOr<UploadTable::Progress> UploadTable::Find(const Key& key) {
  absl::MutexLock lock(&mu_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return UnknownUpload();
  const Entry& entry = it->second;
  if (entry.cancel) {
    entry.cancel();
    return StillReceived();
  }
  if (!entry.key_set_id.empty()) return Progress{.key_set_id = entry.key_set_id};
  return Progress{.received_bytes = entry.parked->received_bytes(),
                  .described_keys = entry.parked->reader.described_keys()};
}

void UploadTable::Expire() {
  // Destroyed without the lock.
  std::vector<Entry> expired;
  absl::MutexLock lock(&mu_);
  const absl::Time now = clock_.Now();
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (it->second.expires_at > now) {
      ++it;
      continue;
    }
    if (it->second.parked.has_value()) {
      spdlog::info("an upload of keys was not gone on with: {} of {} bytes are given up",
                   it->second.parked->received_bytes(), it->second.parked->reader.total_bytes());
    }
    expired.push_back(std::move(it->second));
    it = entries_.erase(it);
  }
}

size_t UploadTable::parked_count() const {
  absl::MutexLock lock(&mu_);
  return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry.second.parked.has_value();
  }));
}

UploadTable::OfTenant UploadTable::UploadsOf(const std::string& tenant) {
  OfTenant uploads{.oldest_kept = entries_.end()};
  for (auto it = entries_.lower_bound({tenant, ""});
       it != entries_.end() && it->first.tenant == tenant; ++it) {
    ++uploads.count;
    if (it->second.cancel) continue;
    if (uploads.oldest_kept == entries_.end() ||
        it->second.expires_at < uploads.oldest_kept->second.expires_at) {
      uploads.oldest_kept = it;
    }
  }
  return uploads;
}

}  // namespace cipherd::server
