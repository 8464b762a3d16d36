// A key set that was asked for: in host memory now, or on its way there from its file.
//
//   std::shared_ptr<KeySetTicket> ticket = store.Acquire(tenant, id);
//   ticket->Await([](const absl::StatusOr<KeySetRef>& keys) { ... });
//
// It has one result, that of whoever comes first: the store, with the set or why there is none, or
// Abandon. While it lives it keeps a set that it got in host memory. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/key_set.h"

namespace cipherd::engine {

class KeySetTicket {
 public:
  using Continuation = std::function<void(const absl::StatusOr<KeySetRef>& keys)>;

  KeySetTicket() = default;
  explicit KeySetTicket(absl::StatusOr<KeySetRef> result) : result_(std::move(result)) {}
  KeySetTicket(const KeySetTicket&) = delete;
  KeySetTicket& operator=(const KeySetTicket&) = delete;

  // Calls `continuation` with the result: before this returns where it is there, else on the thread
  // that brings it. At most once a ticket. It must not block.
  void Await(Continuation continuation) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits no longer: the result is `status` unless there is one already.
  void Abandon(const absl::Status& status) { Resolve(status); }
  void Resolve(absl::StatusOr<KeySetRef> result) ABSL_LOCKS_EXCLUDED(mu_);

  // Null until there is one; it stays as it is then.
  const absl::StatusOr<KeySetRef>* result() const ABSL_LOCKS_EXCLUDED(mu_);
  bool is_resolved() const { return result() != nullptr; }

 private:
  mutable absl::Mutex mu_;
  // Written once.
  std::optional<absl::StatusOr<KeySetRef>> result_ ABSL_GUARDED_BY(mu_);
  Continuation continuation_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::engine
