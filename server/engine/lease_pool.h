// A fixed set of equal things that are lent out one by one.
//
//   LeasePool<Tree> pool("pinned trees of 'mlp'", std::move(trees));
//   if (std::optional<LeasePool<Tree>::Lease> lease = pool.TryLease()) (*lease)->inputs ...
//                                                                // given back when `lease` dies
//
// The pool never grows, so its size is the bound of whatever the things stand for. The one given
// back last is lent next, while it is warm in caches. A lease that is still out when the pool is
// closed has leaked: Close says so, tests fail on it, and the thing stays alive for its holder.
// Thread-safe; a lease may come back on any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {

template <typename T>
class LeasePool {
  struct Core;

 public:
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept
        : core_(std::move(other.core_)), item_(std::exchange(other.item_, nullptr)) {}
    Lease& operator=(Lease&& other) noexcept {
      if (this != &other) {
        Return();
        core_ = std::move(other.core_);
        item_ = std::exchange(other.item_, nullptr);
      }
      return *this;
    }
    ~Lease() { Return(); }

    explicit operator bool() const { return item_ != nullptr; }
    T& operator*() const { return *item_; }
    T* operator->() const { return item_; }

    // Gives the thing back; idempotent.
    void Return() {
      if (T* item = std::exchange(item_, nullptr)) {
        const std::shared_ptr<Core> core = std::move(core_);
        core->Return(item);
      }
    }

   private:
    friend class LeasePool;
    Lease(std::shared_ptr<Core> core, T* item) : core_(std::move(core)), item_(item) {}

    std::shared_ptr<Core> core_;
    T* item_ = nullptr;
  };

  // `label` names the pool in errors. `on_return` runs after each return, on the returning thread,
  // without a lock of the pool.
  LeasePool(std::string_view label, std::vector<std::unique_ptr<T>> items,
            std::function<void()> on_return = nullptr)
      : core_(std::make_shared<Core>(label, std::move(items), std::move(on_return))) {}

  ~LeasePool() {
    if (const absl::Status status = Close(); !status.ok()) {
      spdlog::error("{}", std::string(status.message()));
    }
  }
  LeasePool(const LeasePool&) = delete;
  LeasePool& operator=(const LeasePool&) = delete;

  // Nothing where all are out or the pool is closed. Does not block.
  std::optional<Lease> TryLease() {
    absl::MutexLock lock(&core_->mu);
    if (core_->closed || core_->idle.empty()) return std::nullopt;
    T* item = core_->idle.back();
    core_->idle.pop_back();
    return Lease(core_, item);
  }

  size_t size() const {
    absl::MutexLock lock(&core_->mu);
    return core_->items.size();
  }
  size_t leased_count() const {
    absl::MutexLock lock(&core_->mu);
    return core_->items.size() - core_->idle.size();
  }

  // Lends no more, blocks until every lease has come back, and destroys the things; false, with
  // nothing destroyed, where `timeout` passes first.
  bool Drain(absl::Duration timeout) {
    Core& core = *core_;
    const auto is_whole = [&core]() ABSL_SHARED_LOCKS_REQUIRED(core.mu) {
      return core.idle.size() == core.items.size();
    };
    // Destroyed without the lock.
    std::vector<std::unique_ptr<T>> items;
    absl::MutexLock lock(&core.mu);
    core.closed = true;
    if (!core.mu.AwaitWithTimeout(absl::Condition(&is_whole), timeout)) return false;
    core.idle.clear();
    items.swap(core.items);
    return true;
  }

  // Lends no more. Idempotent. FailedPrecondition, naming how many, where leases are still out;
  // they may come back later, without effect.
  absl::Status Close() {
    absl::MutexLock lock(&core_->mu);
    core_->closed = true;
    core_->on_return = nullptr;
    const size_t out = core_->items.size() - core_->idle.size();
    if (out == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        core_->label, ": ", out, " of ", core_->items.size(), " leases did not come back"));
  }

 private:
  struct Core {
    Core(std::string_view label, std::vector<std::unique_ptr<T>> items,
         std::function<void()> on_return)
        : label(label), items(std::move(items)), on_return(std::move(on_return)) {
      // One is given back without allocating.
      idle.reserve(this->items.size());
      for (const auto& item : this->items) idle.push_back(item.get());
    }

    void Return(T* item) {
      std::function<void()> notify;
      {
        absl::MutexLock lock(&mu);
        idle.push_back(item);
        notify = on_return;
      }
      if (notify) notify();
    }

    const std::string label;
    mutable absl::Mutex mu;
    std::vector<std::unique_ptr<T>> items ABSL_GUARDED_BY(mu);
    std::vector<T*> idle ABSL_GUARDED_BY(mu);
    bool closed ABSL_GUARDED_BY(mu) = false;
    std::function<void()> on_return ABSL_GUARDED_BY(mu);
  };

  const std::shared_ptr<Core> core_;
};

}  // namespace cipherd::engine
