// The key sets of all tenants in host memory.
//
//   CIPHERD_ASSIGN_OR_RETURN(KeyUpload upload, store.Reserve(tenant, total_bytes));
//   CIPHERD_ASSIGN_OR_RETURN(value::Tensor tensor, upload.Allocate(dtype, shape));   // a key at a
//   time CIPHERD_ASSIGN_OR_RETURN(KeyStore::Committed stored, std::move(upload).Commit(...));
//   ...
//   CIPHERD_ASSIGN_OR_RETURN(KeySetRef keys, store.Find(tenant, id));
//
// A set is addressed by the hash of its content and belongs to its tenant: to anyone else it is
// unknown, in the same words. Two tenants with equal content have a set each, so that neither
// learns of the other. An upload charges the budget for all its bytes before the first is
// allocated, and is invisible until Commit; dropped before, it leaves nothing.
//
// Ownership: a KeySetRef keeps the set alive; Drop makes it unknown at once, while memory and
// charge go back when the last reference does. Host memory is pinned by the device, which outlives
// the store; the store outlives references and uploads. Thread-safe; an upload is used by one
// thread at a time.
#pragma once

#include <atomic>
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
#include "core/ckks/key_set.h"
#include "core/runtime/device.h"
#include "core/value/tensor.h"
#include "server/engine/byte_budget.h"

namespace cipherd::engine {

// One tenant's key set. Immutable but for `dropped`.
struct StoredKeySet {
  std::string tenant;
  // 64 hexadecimal digits each.
  std::string id;
  std::string context_id;
  // Pinned host tensors.
  ckks::KeySet keys;
  int64_t bytes = 0;
  ByteBudget::Charge charge;
  // Set when it has become unknown; it must not stay resident anywhere once nobody reads it.
  mutable std::atomic<bool> dropped = false;
};
using KeySetRef = std::shared_ptr<const StoredKeySet>;

class KeyStore;

// Memory for a key set on its way in.
class KeyUpload {
 public:
  KeyUpload(KeyUpload&&) = default;
  KeyUpload& operator=(KeyUpload&&) = default;

  // A contiguous pinned tensor. ResourceExhausted beyond what was reserved, or where the device's
  // pinned pool has no more.
  absl::StatusOr<value::Tensor> Allocate(value::DType dtype, std::vector<int64_t> shape);

 private:
  friend class KeyStore;
  KeyUpload(KeyStore* store, std::string tenant, ByteBudget::Charge charge)
      : store_(store), tenant_(std::move(tenant)), charge_(std::move(charge)) {}

  KeyStore* store_;
  std::string tenant_;
  ByteBudget::Charge charge_;
  int64_t allocated_bytes_ = 0;
};

class KeyStore {
 public:
  struct Options {
    // Of all sets of all tenants, uploads under way included.
    int64_t budget_bytes = 0;
    // Of one set. One that could never be resident on the device should not be let in.
    int64_t max_set_bytes = 0;
  };
  // `on_drop` is called, without a lock of the store, for each set that has become unknown.
  KeyStore(runtime::Device& device, const Options& options,
           std::function<void(const StoredKeySet&)> on_drop = nullptr);

  // ResourceExhausted: more than one set may have (limit exceeded), or than is free (overloaded).
  absl::StatusOr<KeyUpload> Reserve(std::string_view tenant, int64_t total_bytes);

  struct Committed {
    KeySetRef keys;
    bool existed = false;
  };
  // Makes the set known to its tenant. Where the tenant has it already, that one stays and the
  // upload is given up. `keys` are over tensors that `upload` allocated.
  Committed Commit(KeyUpload upload, std::string id, std::string context_id, ckks::KeySet keys);

  // NotFound where `tenant` has no such set, whoever else may.
  absl::StatusOr<KeySetRef> Find(std::string_view tenant, std::string_view id) const;
  absl::Status Drop(std::string_view tenant, std::string_view id);

  int64_t used_bytes() const { return budget_.used_bytes(); }
  int64_t budget_bytes() const { return budget_.limit_bytes(); }
  size_t set_count() const;

 private:
  friend class KeyUpload;
  using Address = std::pair<std::string, std::string>;  // tenant, id

  runtime::Device& device_;
  const Options options_;
  const std::function<void(const StoredKeySet&)> on_drop_;
  ByteBudget budget_;
  mutable absl::Mutex mu_;
  std::map<Address, KeySetRef> sets_ ABSL_GUARDED_BY(mu_);
};

// FailedPrecondition naming the first key of `layout` that `keys` lacks (missing key), or
// InvalidArgument where the set is of another context than `context_id` (wrong context).
absl::Status CheckKeysFit(const StoredKeySet& keys, const ckks::KeyLayout& layout,
                          std::string_view context_id);

}  // namespace cipherd::engine
