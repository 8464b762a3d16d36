// The key sets of all tenants: which there are, those in host memory, and those on file only.
//
//   CIPHERD_ASSIGN_OR_RETURN(KeyUpload upload, store.Reserve(tenant, total_bytes));
//   CIPHERD_ASSIGN_OR_RETURN(value::Tensor tensor, upload.Allocate(shape));     // a key at a time
//   store.Commit(std::move(upload), std::move(set), [](const auto& stored) { ... });
//   ...
//   CIPHERD_ASSIGN_OR_RETURN(KeySetInfoRef info, store.Find(tenant, id));       // what it is
//   store.Acquire(tenant, id)->Await([](const auto& keys) { ... });             // its bytes
//
// A set is addressed by the hash of its content and belongs to its tenant: to anyone else it is
// unknown, in the same words. Two tenants with equal content have a set each, so that neither
// learns of the other. An upload charges the budgets for all its bytes before the first is
// allocated, and is invisible until it is committed; dropped before, it leaves nothing.
//
// Tiers. Host memory holds what is in use and, within its budget, what was used last: room is made
// by taking out sets that nobody refers to, least recently used first. With key files a set is
// written before its upload is acknowledged, survives restarts, and is read back, once however many
// ask for it, when a request needs it; without, a set that had to make room has become unknown, and
// its owner uploads it again. Files have a budget and make room in the same way. A tenant's own
// sets make room where the tenant is at its quota. A set that nobody has used for its time to live
// becomes unknown.
//
// Daemons that share a directory have no other word of each other. A set that is not known here is
// looked for there when a request asks for it. Every sweep compares with the directory: what others
// have put there counts against the budget of files and the quotas of tenants from then on, what
// others have dropped becomes unknown, and a use by anybody is a use. To make room, or because its
// time is over, a set leaves the directory only where nobody has recorded a use since.
//
// Ownership: a KeySetRef keeps the set in host memory; of one that was dropped, memory and charge
// go back when the last reference does. Host memory is pinned by the device, which
// outlives the store; the store outlives references, uploads and tickets' waits.
//
// Threading: thread-safe. Nothing here blocks but Open, Stop and Sweep: the disk has threads of its
// own, one that reads and one that writes, and no lock is held while they do. Continuations run on
// them, or on the calling thread where there is nothing to wait for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/runtime/device.h"
#include "server/engine/byte_budget.h"
#include "server/engine/key_files.h"
#include "server/engine/key_set.h"
#include "server/engine/key_set_table.h"
#include "server/engine/key_set_ticket.h"
#include "server/engine/key_upload.h"
#include "server/engine/task_thread.h"
#include "server/engine/tenant_bytes.h"

namespace cipherd::engine {

class KeyStore {
 public:
  struct Options {
    // Of all sets of all tenants in host memory, uploads under way included.
    int64_t budget_bytes = 0;
    // Of one set. One that could never be resident on the device should not be let in.
    int64_t max_set_bytes = 0;
    // Of all sets of one tenant in any tier, uploads under way included.
    int64_t tenant_budget_bytes = INT64_MAX;
    // Where sets are kept across restarts (key_files.h). Empty: nowhere.
    std::string directory;
    // Whether other daemons have the directory, too.
    bool is_directory_shared = false;
    // Of all files.
    int64_t file_budget_bytes = INT64_MAX;
    // A set that is not used for so long becomes unknown.
    absl::Duration time_to_live = absl::InfiniteDuration();
    // How often that is looked at, and a directory that is shared.
    absl::Duration sweep_interval = absl::Minutes(1);
  };
  // Opens the files, where there are any. `on_drop` is called, without a lock of the store, for
  // each set that has become unknown. Errors of KeyFiles::Open. `clock` outlives the store.
  static absl::StatusOr<std::unique_ptr<KeyStore>> Open(
      runtime::Device& device, Options options,
      std::function<void(const KeySetInfo&)> on_drop = nullptr,
      const base::Clock& clock = base::Clock::Real());
  // Stops.
  ~KeyStore();

  // ResourceExhausted: more than one set may have (limit exceeded), or than could be made free
  // (overloaded).
  absl::StatusOr<KeyUpload> Reserve(std::string_view tenant, int64_t total_bytes)
      ABSL_LOCKS_EXCLUDED(mu_);

  // What an upload came to. `keys` are over tensors that it allocated, `digests` of their bytes;
  // those that are missing are computed.
  struct NewSet {
    std::string id;
    std::string context_id;
    ckks::KeySet keys;
    std::map<ckks::KeyId, base::Sha256Digest> digests;
  };
  struct Committed {
    KeySetInfoRef info;
    bool existed = false;
  };
  using CommitContinuation = std::function<void(const absl::StatusOr<Committed>&)>;
  // Makes the set known to its tenant, once it is on file where there are files. Where the tenant
  // has it already, that one stays and the upload is given up. After an error the set is unknown.
  void Commit(KeyUpload upload, NewSet set, CommitContinuation continuation)
      ABSL_LOCKS_EXCLUDED(mu_);

  // NotFound where `tenant` has no such set that is known here, whoever else may. Counts as a use.
  absl::StatusOr<KeySetInfoRef> Find(std::string_view tenant, std::string_view id)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Whether Acquire looks for a set that Find does not find.
  bool looks_for_unknown_sets() const { return options_.is_directory_shared; }
  // Its bytes, in host memory or on their way there. Results: NotFound as above; ResourceExhausted
  // where host memory has no room; Unavailable where the file cannot be read now. A set whose file
  // is damaged becomes unknown.
  std::shared_ptr<KeySetTicket> Acquire(std::string_view tenant, std::string_view id)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Makes the set unknown for good. `continuation` hears OK once no crash can bring it back;
  // NotFound where `tenant` has no such set; Unavailable, with the set as it was, where its file
  // cannot be removed now.
  using DropContinuation = std::function<void(const absl::Status&)>;
  void Drop(std::string_view tenant, std::string_view id, DropContinuation continuation)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends what has outlived its time, remembers uses across restarts, and compares with a directory
  // that is shared. The store does so by itself; tests call it after they have moved the clock.
  void Sweep() ABSL_LOCKS_EXCLUDED(mu_);

  // Finishes what the disk's threads have begun, ends waits with Unavailable. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  struct Stats {
    int64_t host_bytes = 0;
    int64_t host_budget_bytes = 0;
    int64_t file_bytes = 0;
    int64_t file_budget_bytes = 0;  // 0 without files
    size_t set_count = 0;           // in any tier
    size_t host_set_count = 0;
    uint64_t host_hits = 0;   // sets asked for that were in host memory
    uint64_t file_loads = 0;  // reads of a file
    uint64_t file_load_failures = 0;
    uint64_t host_evictions = 0;  // from host memory, with or without a file
    uint64_t file_evictions = 0;  // dropped for want of room on file
    uint64_t expirations = 0;
  };
  Stats stats() const ABSL_LOCKS_EXCLUDED(mu_);
  int64_t used_bytes() const { return budget_.used_bytes(); }
  int64_t budget_bytes() const { return budget_.limit_bytes(); }
  // Bytes that count against the tenant's quota.
  int64_t tenant_bytes(std::string_view tenant) const { return tenant_bytes_.used_bytes(tenant); }
  size_t set_count() const ABSL_LOCKS_EXCLUDED(mu_);
  const Options& options() const { return options_; }

 private:
  using Record = KeySetTable::Record;
  using Departures = KeySetTable::Departures;
  enum class OnThread : uint8_t { kAny, kWriter };

  KeyStore(runtime::Device& device, Options options, std::function<void(const KeySetInfo&)> on_drop,
           const base::Clock& clock);

  void AdoptFiles() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Committed> CommitNow(KeyUpload& upload, NewSet& set) ABSL_LOCKS_EXCLUDED(mu_);
  // On the writer, where there are files.
  absl::Status DropNow(const std::string& tenant, const std::string& id) ABSL_LOCKS_EXCLUDED(mu_);
  // An upload of what is there already: takes its bytes where the set is on file only. What is
  // left of the upload gives itself back.
  Committed Adopt(Record& existing, KeyUpload& upload, std::shared_ptr<StoredKeySet> stored)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Load(const KeySetInfoRef& info) ABSL_LOCKS_EXCLUDED(mu_);
  // On the reader: finds a set that `sought_` waits for in the directory, and loads it.
  void Seek(const std::string& tenant, const std::string& id) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes over what others have done in the directory.
  void CompareWithDirectory() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<KeySetRef> ReadFromFile(const KeySetInfoRef& info);

  // Charges host memory, making room.
  absl::StatusOr<ByteBudget::Charge> ChargeHost(int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status MakeRoomOnFile(int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Charges the tenant, making room of its own sets.
  absl::StatusOr<TenantBytes::Charge> ChargeTenant(std::string_view tenant, int64_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);

  // On the writer: removes the file of a set that is unknown, unless it was uploaded again, or
  // used by others.
  void RemoveForgotten(const KeySetTable::Use& last_use) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets a set whose file others have removed: there is nothing left to remove.
  void ForgetGone(Record& record, Departures& departures) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Destroys, tells `on_drop_`, removes files: at once on the writer, else there and later.
  void Settle(Departures departures, OnThread thread = OnThread::kAny) ABSL_LOCKS_EXCLUDED(mu_);

  runtime::Device& device_;
  const Options options_;
  const std::function<void(const KeySetInfo&)> on_drop_;
  const base::Clock& clock_;
  ByteBudget budget_;
  TenantBytes tenant_bytes_;
  std::unique_ptr<KeyFiles> files_;

  mutable absl::Mutex mu_;
  KeySetTable table_ ABSL_GUARDED_BY(mu_);
  // By tenant and id: who waits for a set that is looked for in the directory.
  std::map<std::pair<std::string, std::string>, std::vector<std::shared_ptr<KeySetTicket>>> sought_
      ABSL_GUARDED_BY(mu_);
  uint64_t host_hits_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t file_loads_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t file_load_failures_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;

  // Last, so that they end first. Null where there is nothing for them to do.
  std::unique_ptr<TaskThread> reader_;
  std::unique_ptr<TaskThread> writer_;
};

}  // namespace cipherd::engine
