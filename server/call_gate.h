// How many calls may be under way at once, over all connections, how many of one caller, and of one
// tenant, where one caller, a gateway, may be several.
//
//   CallGate::Pass pass(gate, CallerKey(context));
//   if (!pass.is_open()) ... refuse with TooManyCalls(pass)
//   if (!pass.CountTenant(tenant)) ... refuse with TooManyCalls(pass)
//
// gRPC bounds the calls of a connection (once the peer has acknowledged its settings), but neither
// the connections nor the memory of calls. Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace cipherd::server {

struct CallLimits {
  int max_calls = 1024;
  // So that nobody has all of them.
  int max_calls_per_caller = 512;
  // So that no tenant has all of a gateway's. Tenants by token.
  int max_calls_per_tenant = 256;
};

class CallGate {
 public:
  class Pass {
   public:
    // The pass of one `caller` (caller.h).
    Pass(CallGate& gate, const std::string& caller);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    // False beyond a limit: the call is to be refused.
    bool is_open() const { return refused_by_ == nullptr; }
    // From here on the call is one of the tenant's, too; false, and the pass is closed, where that
    // one has as many as may be. Once, of an open pass.
    bool CountTenant(const std::string& tenant);

   private:
    friend absl::Status TooManyCalls(const Pass& pass);

    using Count = std::map<std::string, int>::iterator;

    // Gives back the places of an open one.
    void Leave() ABSL_EXCLUSIVE_LOCKS_REQUIRED(gate_.mu_);

    CallGate& gate_;
    // Of an open one.
    Count caller_;
    std::optional<Count> tenant_;
    // The limit that is reached.
    int CallLimits::*refused_by_ = nullptr;
  };

  explicit CallGate(const CallLimits& limits) : limits_(limits) {}

  int under_way() const ABSL_LOCKS_EXCLUDED(mu_);
  const CallLimits& limits() const { return limits_; }

 private:
  const CallLimits limits_;
  mutable absl::Mutex mu_;
  // Those that are admitted. Who is refused takes nobody's place.
  int under_way_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, int> callers_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int> tenants_ ABSL_GUARDED_BY(mu_);
};

// ResourceExhausted (overloaded): what a call beyond a limit is told.
absl::Status TooManyCalls(const CallGate::Pass& pass);

}  // namespace cipherd::server
