// The part of KeyStore that deals with other daemons in its directory.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/key_store.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {

void KeyStore::Seek(const std::string& tenant, const std::string& id) {
  const absl::Time now = clock_.Now();
  absl::StatusOr<KeyFiles::Found> found = files_->Find(tenant, id);
  // From here on it does not make room for others without their knowing of this use.
  if (found.ok() && !files_->RecordUse(*found->info, now)) found = UnknownKeySet(id);
  absl::StatusOr<KeySetRef> result = UnknownKeySet(id);
  std::vector<std::shared_ptr<KeySetTicket>> waiters;
  KeySetInfoRef to_load;
  {
    absl::MutexLock lock(&mu_);
    const auto sought = sought_.find({tenant, id});
    waiters = std::move(sought->second);
    sought_.erase(sought);
    // An upload or a sweep may have found it meanwhile.
    Record* record = table_.Find(tenant, id);
    if (is_stopped_) {
      result = KeyStoreStopping();
    } else if (record == nullptr && !found.ok()) {
      if (absl::IsUnavailable(found.status())) result = UnreadableKeySet();
    } else {
      if (record == nullptr) {
        record = &table_.Insert(found->info, tenant_bytes_.Adopt(tenant, found->info->bytes),
                                /*is_on_file=*/true, now);
      }
      table_.Touch(*record, now);
      result = record->host;
      if (record->host == nullptr) {
        if (!std::exchange(record->is_loading, true)) to_load = record->info;
        record->waiters.insert(record->waiters.end(), waiters.begin(), waiters.end());
        waiters.clear();
      }
    }
  }
  if (!found.ok() && !absl::IsNotFound(found.status())) {
    spdlog::error("key set {} cannot be read: {}", id, std::string(found.status().message()));
  }
  for (const std::shared_ptr<KeySetTicket>& waiter : waiters) waiter->Resolve(result);
  if (to_load != nullptr) Load(to_load);
}

void KeyStore::CompareWithDirectory() {
  std::vector<KeySetInfoRef> known;
  // Those that have made room, and whose files may be seen still, did not appear.
  std::multiset<KeySetTable::Address> leaving;
  {
    absl::MutexLock lock(&mu_);
    known = table_.SetsOnFile();
    leaving = table_.leaving();
  }
  absl::StatusOr<std::map<std::string, absl::Time>> entries = files_->List();
  if (!entries.ok()) {
    spdlog::error("key directory: {}", std::string(entries.status().message()));
    return;
  }
  std::vector<KeySetTable::Use> uses;
  std::vector<KeySetInfoRef> gone;
  std::vector<KeyFiles::Found> appeared;
  for (const KeySetInfoRef& info : known) {
    const auto entry = entries->find(files_->PathOf(*info));
    if (entry != entries->end()) {
      uses.push_back({info, entry->second});
      entries->erase(entry);
    } else if (files_->IsGone(*info)) {
      gone.push_back(info);
    }
  }
  for (const auto& [path, last_use] : *entries) {
    absl::StatusOr<KeyFiles::Found> found = files_->Look(path);
    if (found.ok()) appeared.push_back(*std::move(found));
  }
  Departures departures;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [info, last_use] : uses) {
      Record* const record = table_.Find(info->tenant, info->id);
      if (record != nullptr && record->info == info) table_.Renew(*record, last_use);
    }
    for (const auto& [info, last_use] : appeared) {
      if (table_.Find(info->tenant, info->id) != nullptr) continue;
      if (leaving.contains({info->tenant, info->id})) continue;
      table_.Insert(info, tenant_bytes_.Adopt(info->tenant, info->bytes), /*is_on_file=*/true,
                    last_use);
    }
    for (const KeySetInfoRef& info : gone) {
      Record* const record = table_.Find(info->tenant, info->id);
      if (record != nullptr && record->info == info) ForgetGone(*record, departures);
    }
  }
  Settle(std::move(departures));
}

void KeyStore::ForgetGone(Record& record, Departures& departures) {
  const KeySetInfoRef info = record.info;
  table_.Forget(record, departures);
  // Whoever writes it again just now is not to lose it.
  departures.files.pop_back();
  table_.EndLeaving(*info);
}

}  // namespace cipherd::engine
