#include "server/engine/key_set_table.h"

#include <algorithm>
#include <iterator>

namespace cipherd::engine {

bool KeySetTable::Record::is_idle() const {
  // References are made of the table's own under its owner's lock, or of others: a count of one
  // stays.
  return !is_loading && (host == nullptr || host.use_count() == 1);
}

KeySetTable::Record* KeySetTable::Find(std::string_view tenant, std::string_view id) {
  const auto it = records_.find(AddressView(tenant, id));
  return it == records_.end() ? nullptr : &it->second;
}

KeySetTable::Record& KeySetTable::Insert(KeySetInfoRef info, TenantBytes::Charge tenant_charge,
                                         bool is_on_file, absl::Time last_use) {
  const Address address(info->tenant, info->id);
  Record& record = records_[address];
  record.info = std::move(info);
  record.tenant_charge = std::move(tenant_charge);
  record.is_on_file = is_on_file;
  record.last_use = last_use;
  record.recorded_use = last_use;
  record.lru_position = lru_.insert(lru_.end(), &record);
  if (is_on_file) file_bytes_ += record.info->bytes;
  return record;
}

void KeySetTable::Touch(Record& record, absl::Time now) {
  record.last_use = now;
  lru_.splice(lru_.end(), lru_, record.lru_position);
}

void KeySetTable::Renew(Record& record, absl::Time last_use) {
  if (last_use <= record.last_use) return;
  record.last_use = last_use;
  record.recorded_use = last_use;
  auto position = lru_.end();
  while (position != lru_.begin() && (*std::prev(position))->last_use > last_use) --position;
  lru_.splice(position, lru_, record.lru_position);
}

void KeySetTable::Forget(Record& record, Departures& departures) {
  const KeySetInfoRef info = record.info;
  if (record.host != nullptr) departures.host.push_back(std::move(record.host));
  if (record.is_on_file) {
    file_bytes_ -= info->bytes;
    departures.files.push_back({info, record.last_use});
    leaving_.emplace(info->tenant, info->id);
  }
  for (std::shared_ptr<KeySetTicket>& waiter : record.waiters) {
    departures.waiters.emplace_back(std::move(waiter), info->id);
  }
  departures.dropped.push_back(info);
  lru_.erase(record.lru_position);
  records_.erase(records_.find(AddressView(info->tenant, info->id)));
}

void KeySetTable::EndLeaving(const KeySetInfo& info) {
  const auto it = leaving_.find({info.tenant, info.id});
  if (it != leaving_.end()) leaving_.erase(it);
}

bool KeySetTable::EvictFromHost(int64_t bytes, Departures& departures) {
  std::vector<Record*> idle;
  for (Record* record : lru_) {
    if (bytes <= 0) break;
    if (record->host == nullptr || !record->is_idle()) continue;
    idle.push_back(record);
    bytes -= record->host->charge.bytes();
  }
  if (bytes > 0) return false;
  for (Record* record : idle) {
    ++host_evictions_;
    if (record->is_on_file) {
      departures.host.push_back(std::move(record->host));
      record->host = nullptr;
    } else {
      Forget(*record, departures);
    }
  }
  return true;
}

void KeySetTable::EvictFiles(int64_t most_bytes, Departures& departures) {
  for (auto it = lru_.begin(); it != lru_.end() && file_bytes_ > most_bytes;) {
    Record& record = **it++;
    if (!record.is_on_file || !record.is_idle()) continue;
    ++file_evictions_;
    Forget(record, departures);
  }
}

void KeySetTable::EvictOf(std::string_view tenant, const TenantBytes& tenants, int64_t bytes,
                          Departures& departures) {
  for (auto it = lru_.begin(); it != lru_.end() && bytes > tenants.available_bytes(tenant);) {
    Record& record = **it++;
    if (record.info->tenant != tenant || !record.is_idle()) continue;
    ++(record.is_on_file ? file_evictions_ : host_evictions_);
    Forget(record, departures);
  }
}

void KeySetTable::Expire(absl::Time now, absl::Duration time_to_live, Departures& departures) {
  for (auto it = lru_.begin(); it != lru_.end();) {
    Record& record = **it++;
    if (now - record.last_use < time_to_live || !record.is_idle()) continue;
    ++expirations_;
    Forget(record, departures);
  }
}

std::vector<KeySetInfoRef> KeySetTable::SetsOnFile() const {
  std::vector<KeySetInfoRef> sets;
  for (const Record* record : lru_) {
    if (record->is_on_file) sets.push_back(record->info);
  }
  return sets;
}

std::vector<KeySetTable::Use> KeySetTable::TakeUnrecordedUses() {
  std::vector<Use> uses;
  for (Record* record : lru_) {
    if (!record->is_on_file || record->recorded_use == record->last_use) continue;
    record->recorded_use = record->last_use;
    uses.push_back({record->info, record->last_use});
  }
  return uses;
}

KeySetTable::Stats KeySetTable::stats() const {
  const auto is_in_host_memory = [](const Record* record) { return record->host != nullptr; };
  return {.file_bytes = file_bytes_,
          .set_count = records_.size(),
          .host_set_count =
              static_cast<size_t>(std::count_if(lru_.begin(), lru_.end(), is_in_host_memory)),
          .host_evictions = host_evictions_,
          .file_evictions = file_evictions_,
          .expirations = expirations_};
}

}  // namespace cipherd::engine
