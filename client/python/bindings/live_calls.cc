#include "client/python/bindings/live_calls.h"

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/python/bindings/status_error.h"

namespace cipherd::python {
namespace {

namespace nb = nanobind;

constexpr char kForkAdvice[] =
    "gRPC does not survive fork(): connect in the child only, or start processes by "
    "multiprocessing.get_context('spawn')";

thread_local int callback_depth = 0;

bool BelongsTo(const CallOwner& owner, const CallOwner& other) {
  return &owner == &other || owner.parent.get() == &other;
}

class Registry {
 public:
  // Never destroyed: threads may come here while the process ends.
  static Registry& OfProcess() {
    static auto* const registry = new Registry();
    return *registry;
  }

  absl::Status Add(const CallOwner& owner, std::shared_ptr<client::Cancellation> cancellation) {
    if (!owner.IsOfThisProcess()) {
      return absl::FailedPreconditionError(absl::StrCat(
          owner.name, ": made by another process, which this one was forked from; ", kForkAdvice));
    }
    absl::MutexLock lock(&mu_);
    if (is_ending_) return absl::FailedPreconditionError("the interpreter is shutting down");
    for (const CallOwner* one = &owner; one != nullptr; one = one->parent.get()) {
      if (one->is_closed) return absl::FailedPreconditionError(absl::StrCat(one->name, ": closed"));
    }
    calls_.push_back({&owner, std::move(cancellation)});
    return absl::OkStatus();
  }

  void Remove(const client::Cancellation* cancellation) {
    absl::MutexLock lock(&mu_);
    calls_.remove_if([&](const Call& call) { return call.cancellation.get() == cancellation; });
  }

  // Nothing of `owner` (null: of anyone) is under way afterwards, nor begins.
  void Close(CallOwner* owner) {
    std::vector<std::shared_ptr<client::Cancellation>> to_cancel;
    {
      absl::MutexLock lock(&mu_);
      (owner == nullptr ? is_ending_ : owner->is_closed) = true;
      for (const Call& call : calls_) {
        if (IsOf(call, owner)) to_cancel.push_back(call.cancellation);
      }
    }
    for (const auto& cancellation : to_cancel) cancellation->Cancel();
    const std::function<bool()> none_is_left = [&] {
      mu_.AssertHeld();
      for (const Call& call : calls_) {
        if (IsOf(call, owner)) return false;
      }
      return true;
    };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&none_is_left));
  }

 private:
  struct Call {
    const CallOwner* owner;
    std::shared_ptr<client::Cancellation> cancellation;
  };

  // A process that was forked finds calls of its parent's here, which never end.
  static bool IsOf(const Call& call, const CallOwner* owner) {
    return call.owner->IsOfThisProcess() && (owner == nullptr || BelongsTo(*call.owner, *owner));
  }

  absl::Mutex mu_;
  std::list<Call> calls_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

CallOwner::CallOwner(std::string owner_name, std::shared_ptr<CallOwner> owner_parent)
    : name(std::move(owner_name)), parent(std::move(owner_parent)), process_(getpid()) {}

bool CallOwner::IsOfThisProcess() const { return process_ == getpid(); }

LiveCall::LiveCall(std::shared_ptr<CallOwner> owner)
    : owner_(std::move(owner)), cancellation_(std::make_shared<client::Cancellation>()) {
  ThrowIfError(Registry::OfProcess().Add(*owner_, cancellation_));
}

LiveCall::~LiveCall() { Registry::OfProcess().Remove(cancellation_.get()); }

CallbackScope::CallbackScope() { ++callback_depth; }
CallbackScope::~CallbackScope() { --callback_depth; }

void CloseCalls(CallOwner& owner) {
  // The calls of another process are not here.
  if (!owner.IsOfThisProcess()) {
    owner.is_closed = true;
    return;
  }
  if (callback_depth > 0) {
    throw StatusError(absl::FailedPreconditionError(
        absl::StrCat(owner.name, ": cannot be closed by a callback of its own calls")));
  }
  const nb::gil_scoped_release release;
  Registry::OfProcess().Close(&owner);
}

void CloseAllCalls() {
  const nb::gil_scoped_release release;
  Registry::OfProcess().Close(nullptr);
}

void CheckGrpcIsOfThisProcess() {
  static const pid_t process = getpid();
  if (process == getpid()) return;
  throw StatusError(absl::FailedPreconditionError(absl::StrCat(
      "connect: gRPC runs in the process that this one was forked from; ", kForkAdvice)));
}

}  // namespace cipherd::python
