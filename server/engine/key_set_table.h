// Which key sets there are, what tiers they are in, when they were last used, and which of them
// make room.
//
//   if (KeySetTable::Record* record = table.Find(tenant, id)) table.Touch(*record, now);
//   KeySetTable::Departures departures;
//   table.EvictFiles(budget_bytes - bytes, departures);
//   ... without the lock: tell of the departures, and let go of them
//
// Whoever needs room takes out sets that are idle, least recently used first. What leaves is only
// handed out, with what is to be done for it: nothing here blocks. Not thread-safe: under its
// owner's lock.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/engine/key_set.h"
#include "server/engine/key_set_ticket.h"
#include "server/engine/tenant_bytes.h"

namespace cipherd::engine {

class KeySetTable {
 public:
  struct Record {
    KeySetInfoRef info;
    TenantBytes::Charge tenant_charge;
    // Null while it is on file only.
    KeySetRef host;
    bool is_on_file = false;
    bool is_loading = false;
    std::vector<std::shared_ptr<KeySetTicket>> waiters;
    absl::Time last_use;
    absl::Time recorded_use;  // in the file
    std::list<Record*>::iterator lru_position;

    // Whether nobody but the table refers to it.
    bool is_idle() const;
  };
  struct Use {
    KeySetInfoRef info;
    absl::Time time;
  };
  // What left the table under its owner's lock, to be destroyed and told of without it.
  struct Departures {
    std::vector<KeySetRef> host;
    std::vector<KeySetInfoRef> dropped;
    // Those of `dropped` that have files, with their last uses.
    std::vector<Use> files;
    // With the ids of the sets that they wait for.
    std::vector<std::pair<std::shared_ptr<KeySetTicket>, std::string>> waiters;
  };

  KeySetTable() = default;
  KeySetTable(const KeySetTable&) = delete;
  KeySetTable& operator=(const KeySetTable&) = delete;

  // Null where `tenant` has no such set. A record stays where it is until it is forgotten.
  Record* Find(std::string_view tenant, std::string_view id);
  // The set must not be there. A use at `last_use` is in its file, where it has one.
  Record& Insert(KeySetInfoRef info, TenantBytes::Charge tenant_charge, bool is_on_file,
                 absl::Time last_use);
  void Touch(Record& record, absl::Time now);
  // Others have used the set at `last_use`, which its file knows of.
  void Renew(Record& record, absl::Time last_use);
  // Makes the set unknown. `record` is gone afterwards. Its file is leaving until its owner says
  // that it has nothing more to do with it.
  void Forget(Record& record, Departures& departures);
  void EndLeaving(const KeySetInfo& info);
  // Tenant and id.
  using Address = std::pair<std::string, std::string>;
  const std::multiset<Address>& leaving() const { return leaving_; }

  // Frees `bytes` of host memory of idle sets; what is on no file becomes unknown. False, and
  // nobody is sent away, where they have less.
  bool EvictFromHost(int64_t bytes, Departures& departures);
  // Makes idle sets unknown until at most `most_bytes` are on file, or none is left.
  void EvictFiles(int64_t most_bytes, Departures& departures);
  // Makes idle sets of the tenant unknown until it may have `bytes` more, or none is left.
  void EvictOf(std::string_view tenant, const TenantBytes& tenants, int64_t bytes,
               Departures& departures);
  // Makes idle sets unknown that were not used for `time_to_live`.
  void Expire(absl::Time now, absl::Duration time_to_live, Departures& departures);

  // All sets that have files.
  std::vector<KeySetInfoRef> SetsOnFile() const;
  // Last uses of sets on file that their files do not know of: each is given once.
  std::vector<Use> TakeUnrecordedUses();

  struct Stats {
    int64_t file_bytes = 0;
    size_t set_count = 0;
    size_t host_set_count = 0;
    uint64_t host_evictions = 0;
    uint64_t file_evictions = 0;
    uint64_t expirations = 0;
  };
  Stats stats() const;
  int64_t file_bytes() const { return file_bytes_; }
  size_t set_count() const { return records_.size(); }

 private:
  using AddressView = std::pair<std::string_view, std::string_view>;
  // So that a search copies neither.
  struct ByAddress {
    using is_transparent = void;
    bool operator()(const AddressView& a, const AddressView& b) const { return a < b; }
  };

  std::map<Address, Record, ByAddress> records_;
  // All records, least recently used first.
  std::list<Record*> lru_;
  // Of forgotten sets with files.
  std::multiset<Address> leaving_;
  int64_t file_bytes_ = 0;
  uint64_t host_evictions_ = 0;
  uint64_t file_evictions_ = 0;
  uint64_t expirations_ = 0;
};

}  // namespace cipherd::engine
