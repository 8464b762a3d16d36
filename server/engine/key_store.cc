#include "server/engine/key_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "server/engine/failure_reason.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {
namespace {

absl::Status Overloaded(std::string_view what) {
  return WithReason(absl::ResourceExhaustedError(std::string(what)), FailureReason::kOverloaded);
}

}  // namespace

absl::StatusOr<std::unique_ptr<KeyStore>> KeyStore::Open(
    runtime::Device& device, Options options, std::function<void(const KeySetInfo&)> on_drop,
    const base::Clock& clock) {
  std::unique_ptr<KeyStore> store(
      new KeyStore(device, std::move(options), std::move(on_drop), clock));
  const Options& opened = store->options_;
  if (!opened.directory.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(
        store->files_, KeyFiles::Open(opened.directory, opened.is_directory_shared
                                                            ? KeyFiles::Sharing::kShared
                                                            : KeyFiles::Sharing::kOneProcess));
    store->reader_ = std::make_unique<TaskThread>("key reader");
  }
  if (!opened.directory.empty() || opened.time_to_live != absl::InfiniteDuration()) {
    store->writer_ = std::make_unique<TaskThread>(
        "key writer",
        Chore{.interval = opened.sweep_interval, .run = [s = store.get()] { s->Sweep(); }});
  }
  if (store->files_ != nullptr) store->AdoptFiles();
  return store;
}

KeyStore::KeyStore(runtime::Device& device, Options options,
                   std::function<void(const KeySetInfo&)> on_drop, const base::Clock& clock)
    : device_(device),
      options_(std::move(options)),
      on_drop_(std::move(on_drop)),
      clock_(clock),
      budget_("key sets in host memory", options_.budget_bytes),
      tenant_bytes_(options_.tenant_budget_bytes) {}

KeyStore::~KeyStore() { Stop(); }

void KeyStore::AdoptFiles() {
  std::vector<KeyFiles::Found> found = files_->found();
  std::sort(found.begin(), found.end(), [](const KeyFiles::Found& a, const KeyFiles::Found& b) {
    return a.last_use < b.last_use;
  });
  {
    absl::MutexLock lock(&mu_);
    for (const KeyFiles::Found& file : found) {
      const KeySetInfo& info = *file.info;
      table_.Insert(file.info, tenant_bytes_.Adopt(info.tenant, info.bytes), /*is_on_file=*/true,
                    file.last_use);
    }
  }
  spdlog::info("key directory '{}': {} key sets", options_.directory, found.size());
  MakeRoomOnFile(0).IgnoreError();
}

absl::StatusOr<KeyUpload> KeyStore::Reserve(std::string_view tenant, int64_t total_bytes) {
  const int64_t limit = std::min(options_.max_set_bytes, options_.tenant_budget_bytes);
  if (total_bytes < 0 || total_bytes > limit) {
    return WithReason(absl::ResourceExhaustedError(
                          absl::StrCat("key set of ", total_bytes, " bytes: the limit is ", limit)),
                      FailureReason::kLimitExceeded);
  }
  CIPHERD_ASSIGN_OR_RETURN(TenantBytes::Charge tenant_charge, ChargeTenant(tenant, total_bytes));
  CIPHERD_ASSIGN_OR_RETURN(ByteBudget::Charge host_charge, ChargeHost(total_bytes));
  return KeyUpload(device_, std::move(tenant_charge), std::move(host_charge));
}

void KeyStore::Commit(KeyUpload upload, NewSet set, CommitContinuation continuation) {
  if (files_ == nullptr) {
    const absl::StatusOr<Committed> committed = CommitNow(upload, set);
    { const KeyUpload released = std::move(upload); }
    continuation(committed);
    return;
  }
  // A std::function must be copyable.
  struct Work {
    KeyUpload upload;
    NewSet set;
    CommitContinuation continuation;
  };
  auto work = std::make_shared<Work>(Work{std::move(upload), std::move(set), continuation});
  const bool is_posted = writer_->Post([this, work] {
    const absl::StatusOr<Committed> committed = CommitNow(work->upload, work->set);
    // Memory and charges go back before anyone hears of a failure.
    { const KeyUpload released = std::move(work->upload); }
    work->set = {};
    work->continuation(committed);
  });
  if (!is_posted) continuation(KeyStoreStopping());
}

absl::StatusOr<KeyStore::Committed> KeyStore::CommitNow(KeyUpload& upload, NewSet& set) {
  auto stored = std::make_shared<StoredKeySet>();
  stored->info =
      DescribeKeySet(upload.tenant_charge_.tenant(), set.id, set.context_id, set.keys, set.digests);
  stored->keys = std::move(set.keys);
  const KeySetInfoRef info = stored->info;
  const absl::Time now = clock_.Now();
  if (files_ != nullptr) {
    bool is_known = false;
    {
      absl::MutexLock lock(&mu_);
      if (Record* const existing = table_.Find(info->tenant, info->id)) {
        // Where the directory is shared, another may have dropped it: not once this use is there.
        if (!options_.is_directory_shared) return Adopt(*existing, upload, std::move(stored));
        is_known = true;
      }
    }
    if (is_known) {
      // Without a lock: this blocks.
      const bool has_file = files_->RecordUse(*info, now);
      Departures departures;
      {
        absl::MutexLock lock(&mu_);
        if (Record* const existing = table_.Find(info->tenant, info->id)) {
          if (has_file) return Adopt(*existing, upload, std::move(stored));
          ForgetGone(*existing, departures);
        }
      }
      Settle(std::move(departures), OnThread::kWriter);
    }
    CIPHERD_RETURN_IF_ERROR(MakeRoomOnFile(info->bytes));
    if (const absl::Status written = files_->Write(*info, stored->keys); !written.ok()) {
      spdlog::error("key set {} was not stored: {}", info->id, std::string(written.message()));
      // What the disk's trouble is does not concern clients.
      return Overloaded("the key set cannot be stored now");
    }
    if (!files_->RecordUse(*info, now)) {
      spdlog::error("key set {} was not stored: somebody has removed its file", info->id);
      return Overloaded("the key set cannot be stored now");
    }
  }
  absl::MutexLock lock(&mu_);
  // Without files another upload may have been faster; in a directory that is shared, others write.
  if (Record* const existing = table_.Find(info->tenant, info->id)) {
    return Adopt(*existing, upload, std::move(stored));
  }
  // The host charge goes with the bytes, the tenant's with the record.
  upload.tenant_charge_.ShrinkTo(info->bytes);
  Record& record = table_.Insert(info, std::move(upload.tenant_charge_), files_ != nullptr, now);
  stored->charge = std::move(upload.host_charge_);
  record.host = std::move(stored);
  return Committed{info, /*existed=*/false};
}

KeyStore::Committed KeyStore::Adopt(Record& existing, KeyUpload& upload,
                                    std::shared_ptr<StoredKeySet> stored) {
  table_.Touch(existing, clock_.Now());
  if (existing.host == nullptr && !existing.is_loading) {
    // It was on file only, and these are its bytes.
    stored->info = existing.info;
    stored->charge = std::move(upload.host_charge_);
    existing.host = std::move(stored);
  }
  return {existing.info, /*existed=*/true};
}

absl::StatusOr<KeySetInfoRef> KeyStore::Find(std::string_view tenant, std::string_view id) {
  absl::MutexLock lock(&mu_);
  Record* const record = table_.Find(tenant, id);
  if (record == nullptr) return UnknownKeySet(id);
  table_.Touch(*record, clock_.Now());
  return record->info;
}

std::shared_ptr<KeySetTicket> KeyStore::Acquire(std::string_view tenant, std::string_view id) {
  absl::MutexLock lock(&mu_);
  Record* const record = table_.Find(tenant, id);
  if (record == nullptr) {
    if (!looks_for_unknown_sets()) return std::make_shared<KeySetTicket>(UnknownKeySet(id));
    if (is_stopped_) return std::make_shared<KeySetTicket>(KeyStoreStopping());
    auto ticket = std::make_shared<KeySetTicket>();
    std::pair<std::string, std::string> address{tenant, id};
    auto& waiters = sought_[address];
    waiters.push_back(ticket);
    if (waiters.size() == 1) {
      reader_->Post([this, address = std::move(address)] { Seek(address.first, address.second); });
    }
    return ticket;
  }
  table_.Touch(*record, clock_.Now());
  if (record->host != nullptr) {
    ++host_hits_;
    return std::make_shared<KeySetTicket>(record->host);
  }
  if (is_stopped_) return std::make_shared<KeySetTicket>(KeyStoreStopping());
  auto ticket = std::make_shared<KeySetTicket>();
  record->waiters.push_back(ticket);
  if (!std::exchange(record->is_loading, true)) {
    reader_->Post([this, info = record->info] { Load(info); });
  }
  return ticket;
}

void KeyStore::Load(const KeySetInfoRef& info) {
  absl::StatusOr<KeySetRef> keys = ReadFromFile(info);
  std::vector<std::shared_ptr<KeySetTicket>> waiters;
  Departures departures;
  {
    absl::MutexLock lock(&mu_);
    ++(keys.ok() ? file_loads_ : file_load_failures_);
    Record* const record = table_.Find(info->tenant, info->id);
    // One that was dropped meanwhile has told its waiters.
    if (record == nullptr || record->info != info) return;
    record->is_loading = false;
    waiters = std::move(record->waiters);
    record->waiters.clear();
    if (keys.ok()) {
      record->host = *keys;
    } else if (absl::IsDataLoss(keys.status())) {
      spdlog::error("dropping a damaged key set: {}", std::string(keys.status().message()));
      table_.Forget(*record, departures);
      keys = UnknownKeySet(info->id);
    }
  }
  Settle(std::move(departures));
  for (const std::shared_ptr<KeySetTicket>& waiter : waiters) waiter->Resolve(keys);
}

absl::StatusOr<KeySetRef> KeyStore::ReadFromFile(const KeySetInfoRef& info) {
  {
    absl::MutexLock lock(&mu_);
    if (is_stopped_) return KeyStoreStopping();
  }
  auto stored = std::make_shared<StoredKeySet>();
  stored->info = info;
  CIPHERD_ASSIGN_OR_RETURN(stored->charge, ChargeHost(info->bytes));
  absl::StatusOr<ckks::KeySet> keys = files_->Read(
      *info, [this](std::vector<int64_t> shape) { return AllocateKey(device_, std::move(shape)); });
  if (keys.ok()) {
    stored->keys = *std::move(keys);
    return KeySetRef(std::move(stored));
  }
  if (absl::IsDataLoss(keys.status()) || absl::IsResourceExhausted(keys.status())) {
    return keys.status();
  }
  spdlog::error("key set {} cannot be read: {}", info->id, std::string(keys.status().message()));
  return UnreadableKeySet();
}

void KeyStore::Drop(std::string_view tenant, std::string_view id, DropContinuation continuation) {
  if (files_ == nullptr) {
    continuation(DropNow(std::string(tenant), std::string(id)));
    return;
  }
  const bool is_posted = writer_->Post([this, tenant = std::string(tenant), id = std::string(id),
                                        continuation] { continuation(DropNow(tenant, id)); });
  if (!is_posted) continuation(KeyStoreStopping());
}

absl::Status KeyStore::DropNow(const std::string& tenant, const std::string& id) {
  absl::StatusOr<KeySetInfoRef> info = Find(tenant, id);
  if (!info.ok() && options_.is_directory_shared) {
    absl::StatusOr<KeyFiles::Found> found = files_->Find(tenant, id);
    if (found.ok()) info = std::move(found->info);
  }
  if (!info.ok()) return info.status();
  // The file first: a set that is unknown must not be known again after a crash.
  if (files_ != nullptr) {
    if (const absl::Status removed = files_->Remove(**info); !removed.ok()) {
      spdlog::error("key set {} was not dropped: {}", id, std::string(removed.message()));
      return WithReason(absl::UnavailableError("the key set cannot be dropped now"),
                        FailureReason::kUnavailable);
    }
  }
  Departures departures;
  {
    absl::MutexLock lock(&mu_);
    // Whoever missed the file meanwhile may have forgotten it, too.
    Record* const record = table_.Find(tenant, id);
    if (record != nullptr && record->info == *info) table_.Forget(*record, departures);
  }
  Settle(std::move(departures), OnThread::kWriter);
  return absl::OkStatus();
}

void KeyStore::Sweep() {
  if (options_.is_directory_shared) CompareWithDirectory();
  Departures departures;
  std::vector<KeySetTable::Use> uses;
  {
    absl::MutexLock lock(&mu_);
    table_.Expire(clock_.Now(), options_.time_to_live, departures);
    uses = table_.TakeUnrecordedUses();
  }
  for (const KeySetTable::Use& use : uses) files_->RecordUse(*use.info, use.time);
  Settle(std::move(departures));
}

void KeyStore::Stop() {
  {
    absl::MutexLock lock(&mu_);
    is_stopped_ = true;
  }
  if (reader_ != nullptr) reader_->Stop();
  if (files_ != nullptr) Sweep();
  if (writer_ != nullptr) writer_->Stop();
}

KeyStore::Stats KeyStore::stats() const {
  absl::MutexLock lock(&mu_);
  const KeySetTable::Stats table = table_.stats();
  return {.host_bytes = budget_.used_bytes(),
          .host_budget_bytes = budget_.limit_bytes(),
          .file_bytes = table.file_bytes,
          .file_budget_bytes = files_ == nullptr ? 0 : options_.file_budget_bytes,
          .set_count = table.set_count,
          .host_set_count = table.host_set_count,
          .host_hits = host_hits_,
          .file_loads = file_loads_,
          .file_load_failures = file_load_failures_,
          .host_evictions = table.host_evictions,
          .file_evictions = table.file_evictions,
          .expirations = table.expirations};
}

size_t KeyStore::set_count() const {
  absl::MutexLock lock(&mu_);
  return table_.set_count();
}

absl::StatusOr<ByteBudget::Charge> KeyStore::ChargeHost(int64_t bytes) {
  // Another thread may take what was made free; it cannot do so for ever, as room runs out.
  while (true) {
    absl::StatusOr<ByteBudget::Charge> charge = budget_.Reserve(bytes);
    if (charge.ok() || ReasonOf(charge.status()) == FailureReason::kLimitExceeded) return charge;
    Departures departures;
    {
      absl::MutexLock lock(&mu_);
      const int64_t missing = bytes - (budget_.limit_bytes() - budget_.used_bytes());
      // Nobody is sent away for one who would find no room all the same.
      if (!table_.EvictFromHost(missing, departures)) return charge.status();
    }
    Settle(std::move(departures));
  }
}

absl::Status KeyStore::MakeRoomOnFile(int64_t bytes) {
  const int64_t budget = options_.file_budget_bytes;
  if (bytes > budget) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          "key sets on file: asked for ", bytes, " bytes, the limit is ", budget)),
                      FailureReason::kLimitExceeded);
  }
  Departures departures;
  int64_t available = 0;
  {
    absl::MutexLock lock(&mu_);
    table_.EvictFiles(budget - bytes, departures);
    available = budget - table_.file_bytes();
  }
  Settle(std::move(departures), OnThread::kWriter);
  if (bytes <= available) return absl::OkStatus();
  return Overloaded(absl::StrCat("key sets on file: asked for ", bytes, " bytes, ", available,
                                 " of ", budget, " are available"));
}

absl::StatusOr<TenantBytes::Charge> KeyStore::ChargeTenant(std::string_view tenant, int64_t bytes) {
  Departures departures;
  absl::StatusOr<TenantBytes::Charge> charge;
  {
    absl::MutexLock lock(&mu_);
    table_.EvictOf(tenant, tenant_bytes_, bytes, departures);
    charge = tenant_bytes_.Reserve(tenant, bytes);
  }
  Settle(std::move(departures));
  return charge;
}

void KeyStore::RemoveForgotten(const KeySetTable::Use& last_use) {
  const KeySetInfo& info = *last_use.info;
  {
    // An upload that was waiting for this thread when the set was forgotten has a file of the same
    // name by now. No other thread of this process writes or removes files.
    absl::MutexLock lock(&mu_);
    const Record* const successor = table_.Find(info.tenant, info.id);
    if (successor != nullptr && successor->is_on_file) {
      table_.EndLeaving(info);
      return;
    }
  }
  const absl::Status status = files_->RemoveUnlessUsedSince(info, last_use.time);
  if (!status.ok()) {
    spdlog::error("key set {}: {}", info.id, std::string(status.message()));
  }
  absl::MutexLock lock(&mu_);
  table_.EndLeaving(info);
}

void KeyStore::Settle(Departures departures, OnThread thread) {
  for (const KeySetInfoRef& info : departures.dropped) {
    info->dropped.store(true);
    if (on_drop_) on_drop_(*info);
  }
  departures.host.clear();
  for (const KeySetTable::Use& last_use : departures.files) {
    if (thread == OnThread::kWriter) {
      RemoveForgotten(last_use);
    } else {
      writer_->Post([this, last_use] { RemoveForgotten(last_use); });
    }
  }
  for (const auto& [waiter, id] : departures.waiters) waiter->Resolve(UnknownKeySet(id));
}

}  // namespace cipherd::engine
