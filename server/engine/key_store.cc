#include "server/engine/key_store.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/status_macros.h"
#include "server/engine/failure_reason.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {
namespace {

absl::Status Overloaded(std::string_view what) {
  return WithReason(absl::ResourceExhaustedError(std::string(what)), FailureReason::kOverloaded);
}

absl::Status Stopping() {
  return WithReason(absl::UnavailableError("the daemon is shutting down"),
                    FailureReason::kUnavailable);
}

base::Sha256Digest HashOf(const ckks::EvaluationKey& key) {
  return base::Sha256Of({key.data.data_as<const uint8_t>(), static_cast<size_t>(key.data.bytes())});
}

KeySetInfoRef Describe(const std::string& tenant, const KeyStore::NewSet& set) {
  auto info = std::make_shared<KeySetInfo>();
  info->tenant = tenant;
  info->id = set.id;
  info->context_id = set.context_id;
  for (const auto& [id, key] : set.keys) {
    const auto known = set.digests.find(id);
    info->keys.push_back({.id = id,
                          .shape = key.data.shape(),
                          .digest = known != set.digests.end() ? known->second : HashOf(key)});
    info->bytes += key.data.bytes();
  }
  return info;
}

}  // namespace

KeyUpload& KeyUpload::operator=(KeyUpload&& other) noexcept {
  if (this != &other) {
    Release();
    store_ = std::exchange(other.store_, nullptr);
    tenant_ = std::move(other.tenant_);
    charge_ = std::move(other.charge_);
    allocated_bytes_ = other.allocated_bytes_;
  }
  return *this;
}

void KeyUpload::Release() {
  if (KeyStore* const store = std::exchange(store_, nullptr)) {
    absl::MutexLock lock(&store->mu_);
    store->ReleaseTenant(tenant_, charge_.bytes());
  }
  charge_.Release();
}

absl::StatusOr<value::Tensor> KeyUpload::Allocate(std::vector<int64_t> shape) {
  const std::optional<int64_t> count = base::CheckedElementCount(shape);
  const int64_t available = charge_.bytes() - allocated_bytes_;
  if (!count.has_value() || *count > available / value::ElementBytes(value::DType::kUint64)) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("key set: a key is larger than the ", available,
                                                  " bytes that are left of those declared")),
        FailureReason::kLimitExceeded);
  }
  absl::StatusOr<value::Tensor> tensor =
      value::Tensor::AllocatePinned(store_->device_, value::DType::kUint64, std::move(shape));
  if (!tensor.ok()) return Overloaded(std::string(tensor.status().message()));
  allocated_bytes_ += tensor->bytes();
  return tensor;
}

absl::StatusOr<std::unique_ptr<KeyStore>> KeyStore::Open(
    runtime::Device& device, Options options, std::function<void(const KeySetInfo&)> on_drop,
    const base::Clock& clock) {
  std::unique_ptr<KeyStore> store(
      new KeyStore(device, std::move(options), std::move(on_drop), clock));
  const Options& opened = store->options_;
  if (!opened.directory.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(store->files_, KeyFiles::Open(opened.directory));
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
      budget_("key sets in host memory", options_.budget_bytes) {}

KeyStore::~KeyStore() { Stop(); }

void KeyStore::AdoptFiles() {
  std::vector<KeyFiles::Found> found = files_->found();
  std::sort(found.begin(), found.end(), [](const KeyFiles::Found& a, const KeyFiles::Found& b) {
    return a.last_use < b.last_use;
  });
  {
    absl::MutexLock lock(&mu_);
    for (const KeyFiles::Found& file : found) {
      Record& record = Insert(file.info, file.last_use);
      record.is_on_file = true;
      record.recorded_use = file.last_use;
      tenant_bytes_[file.info->tenant] += file.info->bytes;
      stats_.file_bytes += file.info->bytes;
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
  CIPHERD_RETURN_IF_ERROR(ChargeTenant(tenant, total_bytes));
  absl::StatusOr<ByteBudget::Charge> charge = ChargeHost(total_bytes);
  if (!charge.ok()) {
    absl::MutexLock lock(&mu_);
    ReleaseTenant(std::string(tenant), total_bytes);
    return charge.status();
  }
  return KeyUpload(this, std::string(tenant), *std::move(charge));
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
  if (!is_posted) continuation(Stopping());
}

absl::StatusOr<KeyStore::Committed> KeyStore::CommitNow(KeyUpload& upload, NewSet& set) {
  auto stored = std::make_shared<StoredKeySet>();
  stored->info = Describe(upload.tenant_, set);
  stored->keys = std::move(set.keys);
  const KeySetInfoRef info = stored->info;
  const absl::Time now = clock_.Now();
  if (files_ != nullptr) {
    {
      absl::MutexLock lock(&mu_);
      if (Record* const existing = FindRecord(info->tenant, info->id)) {
        return Adopt(*existing, upload, std::move(stored));
      }
    }
    CIPHERD_RETURN_IF_ERROR(MakeRoomOnFile(info->bytes));
    if (const absl::Status written = files_->Write(*info, stored->keys); !written.ok()) {
      spdlog::error("key set {} was not stored: {}", info->id, std::string(written.message()));
      // What the disk's trouble is does not concern clients.
      return Overloaded("the key set cannot be stored now");
    }
    files_->RecordUse(*info, now);
  }
  absl::MutexLock lock(&mu_);
  // Where there are files, only this thread inserts; else another upload may have been faster.
  if (Record* const existing = FindRecord(info->tenant, info->id)) {
    return Adopt(*existing, upload, std::move(stored));
  }
  Record& record = Insert(info, now);
  record.is_on_file = files_ != nullptr;
  record.recorded_use = now;
  if (record.is_on_file) stats_.file_bytes += info->bytes;
  // The host charge goes with the bytes, the tenant's with the record.
  ReleaseTenant(upload.tenant_, upload.charge_.bytes() - info->bytes);
  upload.store_ = nullptr;
  stored->charge = std::move(upload.charge_);
  record.host = std::move(stored);
  return Committed{info, /*existed=*/false};
}

KeyStore::Committed KeyStore::Adopt(Record& existing, KeyUpload& upload,
                                    std::shared_ptr<StoredKeySet> stored) {
  Touch(existing);
  if (existing.host == nullptr && !existing.is_loading) {
    // It was on file only, and these are its bytes.
    stored->info = existing.info;
    stored->charge = std::move(upload.charge_);
    ReleaseTenant(upload.tenant_, stored->charge.bytes());
    upload.store_ = nullptr;
    existing.host = std::move(stored);
  }
  return {existing.info, /*existed=*/true};
}

absl::StatusOr<KeySetInfoRef> KeyStore::Find(std::string_view tenant, std::string_view id) {
  absl::MutexLock lock(&mu_);
  Record* const record = FindRecord(tenant, id);
  if (record == nullptr) return UnknownKeySet(id);
  Touch(*record);
  return record->info;
}

std::shared_ptr<KeySetTicket> KeyStore::Acquire(std::string_view tenant, std::string_view id) {
  absl::MutexLock lock(&mu_);
  Record* const record = FindRecord(tenant, id);
  if (record == nullptr) return std::make_shared<KeySetTicket>(UnknownKeySet(id));
  Touch(*record);
  if (record->host != nullptr) {
    ++stats_.host_hits;
    return std::make_shared<KeySetTicket>(record->host);
  }
  if (is_stopped_) return std::make_shared<KeySetTicket>(Stopping());
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
    ++(keys.ok() ? stats_.file_loads : stats_.file_load_failures);
    Record* const record = FindRecord(info->tenant, info->id);
    // One that was dropped meanwhile has told its waiters.
    if (record == nullptr || record->info != info) return;
    record->is_loading = false;
    waiters = std::move(record->waiters);
    record->waiters.clear();
    if (keys.ok()) {
      record->host = *keys;
    } else if (absl::IsDataLoss(keys.status())) {
      spdlog::error("dropping a damaged key set: {}", std::string(keys.status().message()));
      Forget(*record, departures);
      keys = UnknownKeySet(info->id);
    }
  }
  Settle(std::move(departures));
  for (const std::shared_ptr<KeySetTicket>& waiter : waiters) waiter->Resolve(keys);
}

absl::StatusOr<KeySetRef> KeyStore::ReadFromFile(const KeySetInfoRef& info) {
  {
    absl::MutexLock lock(&mu_);
    if (is_stopped_) return Stopping();
  }
  auto stored = std::make_shared<StoredKeySet>();
  stored->info = info;
  CIPHERD_ASSIGN_OR_RETURN(stored->charge, ChargeHost(info->bytes));
  absl::StatusOr<ckks::KeySet> keys =
      files_->Read(*info, [this](std::vector<int64_t> shape) -> absl::StatusOr<value::Tensor> {
        absl::StatusOr<value::Tensor> tensor =
            value::Tensor::AllocatePinned(device_, value::DType::kUint64, std::move(shape));
        if (!tensor.ok()) return Overloaded(std::string(tensor.status().message()));
        return tensor;
      });
  if (keys.ok()) {
    stored->keys = *std::move(keys);
    return KeySetRef(std::move(stored));
  }
  if (absl::IsDataLoss(keys.status()) || absl::IsResourceExhausted(keys.status())) {
    return keys.status();
  }
  spdlog::error("key set {} cannot be read: {}", info->id, std::string(keys.status().message()));
  return WithReason(absl::UnavailableError("the key set cannot be read from its file now"),
                    FailureReason::kUnavailable);
}

void KeyStore::Drop(std::string_view tenant, std::string_view id, DropContinuation continuation) {
  if (files_ == nullptr) {
    continuation(DropNow(std::string(tenant), std::string(id)));
    return;
  }
  const bool is_posted = writer_->Post([this, tenant = std::string(tenant), id = std::string(id),
                                        continuation] { continuation(DropNow(tenant, id)); });
  if (!is_posted) continuation(Stopping());
}

absl::Status KeyStore::DropNow(const std::string& tenant, const std::string& id) {
  const absl::StatusOr<KeySetInfoRef> info = Find(tenant, id);
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
    Record* const record = FindRecord(tenant, id);
    if (record != nullptr && record->info == *info) Forget(*record, departures);
  }
  Settle(std::move(departures), OnThread::kWriter);
  return absl::OkStatus();
}

void KeyStore::Sweep() {
  Departures departures;
  std::vector<std::pair<KeySetInfoRef, absl::Time>> uses;
  {
    absl::MutexLock lock(&mu_);
    const absl::Time now = clock_.Now();
    for (auto it = lru_.begin(); it != lru_.end();) {
      Record& record = **it++;
      if (now - record.last_use >= options_.time_to_live && IsIdle(record)) {
        ++stats_.expirations;
        Forget(record, departures);
      } else if (record.is_on_file && record.recorded_use != record.last_use) {
        record.recorded_use = record.last_use;
        uses.emplace_back(record.info, record.last_use);
      }
    }
  }
  for (const auto& [info, time] : uses) files_->RecordUse(*info, time);
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
  Stats stats = stats_;
  stats.host_bytes = budget_.used_bytes();
  stats.host_budget_bytes = budget_.limit_bytes();
  stats.file_budget_bytes = files_ == nullptr ? 0 : options_.file_budget_bytes;
  stats.set_count = records_.size();
  stats.host_set_count = static_cast<size_t>(std::count_if(
      lru_.begin(), lru_.end(), [](const Record* record) { return record->host != nullptr; }));
  return stats;
}

int64_t KeyStore::tenant_bytes(std::string_view tenant) const {
  absl::MutexLock lock(&mu_);
  const auto it = tenant_bytes_.find(tenant);
  return it == tenant_bytes_.end() ? 0 : it->second;
}

size_t KeyStore::set_count() const {
  absl::MutexLock lock(&mu_);
  return records_.size();
}

absl::StatusOr<ByteBudget::Charge> KeyStore::ChargeHost(int64_t bytes) {
  // Another thread may take what was made free; it cannot do so for ever, as room runs out.
  while (true) {
    absl::StatusOr<ByteBudget::Charge> charge = budget_.Reserve(bytes);
    if (charge.ok() || ReasonOf(charge.status()) == FailureReason::kLimitExceeded) return charge;
    Departures departures;
    {
      absl::MutexLock lock(&mu_);
      int64_t missing = bytes - (budget_.limit_bytes() - budget_.used_bytes());
      std::vector<Record*> idle;
      for (Record* record : lru_) {
        if (missing <= 0) break;
        if (record->host == nullptr || !IsIdle(*record)) continue;
        idle.push_back(record);
        missing -= record->host->charge.bytes();
      }
      // Nobody is sent away for one who would find no room all the same.
      if (missing > 0) return charge.status();
      for (Record* record : idle) {
        ++stats_.host_evictions;
        if (record->is_on_file) {
          departures.host.push_back(std::move(record->host));
          record->host = nullptr;
        } else {
          Forget(*record, departures);
        }
      }
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
    for (auto it = lru_.begin(); it != lru_.end() && bytes > budget - stats_.file_bytes;) {
      Record& record = **it++;
      if (!record.is_on_file || !IsIdle(record)) continue;
      ++stats_.file_evictions;
      Forget(record, departures);
    }
    available = budget - stats_.file_bytes;
  }
  Settle(std::move(departures), OnThread::kWriter);
  if (bytes <= available) return absl::OkStatus();
  return Overloaded(absl::StrCat("key sets on file: asked for ", bytes, " bytes, ", available,
                                 " of ", budget, " are available"));
}

absl::Status KeyStore::ChargeTenant(std::string_view tenant, int64_t bytes) {
  Departures departures;
  absl::Status status;
  {
    absl::MutexLock lock(&mu_);
    const std::string name(tenant);
    const auto available = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      const auto used = tenant_bytes_.find(name);
      return options_.tenant_budget_bytes - (used == tenant_bytes_.end() ? 0 : used->second);
    };
    for (auto it = lru_.begin(); it != lru_.end() && bytes > available();) {
      Record& record = **it++;
      if (record.info->tenant != name || !IsIdle(record)) continue;
      ++(record.is_on_file ? stats_.file_evictions : stats_.host_evictions);
      Forget(record, departures);
    }
    if (bytes > available()) {
      status = Overloaded(absl::StrCat("key sets of the tenant: asked for ", bytes, " bytes, ",
                                       available(), " of ", options_.tenant_budget_bytes,
                                       " are available"));
    } else {
      tenant_bytes_[name] += bytes;
    }
  }
  Settle(std::move(departures));
  return status;
}

void KeyStore::ReleaseTenant(const std::string& tenant, int64_t bytes) {
  const auto it = tenant_bytes_.find(tenant);
  if (it == tenant_bytes_.end()) return;
  it->second -= bytes;
  if (it->second == 0) tenant_bytes_.erase(it);
}

bool KeyStore::IsIdle(const Record& record) {
  // References are made of the store's own under its lock, or of others: a count of one stays.
  return !record.is_loading && (record.host == nullptr || record.host.use_count() == 1);
}

KeyStore::Record* KeyStore::FindRecord(std::string_view tenant, std::string_view id) {
  const auto it = records_.find({std::string(tenant), std::string(id)});
  return it == records_.end() ? nullptr : &it->second;
}

void KeyStore::Touch(Record& record) {
  record.last_use = clock_.Now();
  lru_.splice(lru_.end(), lru_, record.lru_position);
}

KeyStore::Record& KeyStore::Insert(KeySetInfoRef info, absl::Time last_use) {
  const Address address(info->tenant, info->id);
  Record& record = records_[address];
  record.info = std::move(info);
  record.last_use = last_use;
  record.lru_position = lru_.insert(lru_.end(), &record);
  return record;
}

void KeyStore::Forget(Record& record, Departures& departures) {
  const KeySetInfoRef info = record.info;
  ReleaseTenant(info->tenant, info->bytes);
  if (record.host != nullptr) departures.host.push_back(std::move(record.host));
  if (record.is_on_file) {
    stats_.file_bytes -= info->bytes;
    departures.files.push_back(info);
  }
  for (std::shared_ptr<KeySetTicket>& waiter : record.waiters) {
    departures.waiters.emplace_back(std::move(waiter), info->id);
  }
  departures.dropped.push_back(info);
  lru_.erase(record.lru_position);
  records_.erase({info->tenant, info->id});
}

void KeyStore::RemoveForgotten(const KeySetInfo& info) {
  {
    // An upload that was waiting for this thread when the set was forgotten has a file of the same
    // name by now. Nobody else writes or removes files.
    absl::MutexLock lock(&mu_);
    const Record* const successor = FindRecord(info.tenant, info.id);
    if (successor != nullptr && successor->is_on_file) return;
  }
  if (const absl::Status status = files_->Remove(info); !status.ok()) {
    spdlog::error("key set {}: {}", info.id, std::string(status.message()));
  }
}

void KeyStore::Settle(Departures departures, OnThread thread) {
  for (const KeySetInfoRef& info : departures.dropped) {
    info->dropped.store(true);
    if (on_drop_) on_drop_(*info);
  }
  departures.host.clear();
  for (const KeySetInfoRef& info : departures.files) {
    if (thread == OnThread::kWriter) {
      RemoveForgotten(*info);
    } else {
      writer_->Post([this, info] { RemoveForgotten(*info); });
    }
  }
  for (const auto& [waiter, id] : departures.waiters) waiter->Resolve(UnknownKeySet(id));
}

}  // namespace cipherd::engine
