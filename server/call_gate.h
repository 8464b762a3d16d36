// How many calls may be under way at once, over all connections, and how many of one caller.
//
//   CallGate::Pass pass(gate, CallerKey(context));
//   if (!pass.is_open()) ... refuse with TooManyCalls(pass)
//
// gRPC bounds the calls of a connection (once the peer has acknowledged its settings), but neither
// the connections nor the memory of calls. Thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace cipherd::server {

struct CallLimits {
  int max_calls = 1024;
  // So that nobody has all of them.
  int max_calls_per_caller = 512;
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

   private:
    friend absl::Status TooManyCalls(const Pass& pass);

    CallGate& gate_;
    // Of an open one.
    std::map<std::string, int>::iterator caller_;
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
};

// ResourceExhausted (overloaded): what a call beyond a limit is told.
absl::Status TooManyCalls(const CallGate::Pass& pass);

}  // namespace cipherd::server
