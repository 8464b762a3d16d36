// How many calls that hold memory may be under way at once, over all connections.
//
//   CallGate::Pass pass(gate);
//   if (!pass.is_open()) ... refuse
//
// gRPC bounds the calls of a connection but not the connections. Thread-safe.
#pragma once

#include <atomic>

#include "absl/status/status.h"

namespace cipherd::server {

class CallGate {
 public:
  class Pass {
   public:
    explicit Pass(CallGate& gate)
        : gate_(gate), is_open_(gate.under_way_.fetch_add(1) < gate.limit_) {}
    ~Pass() { gate_.under_way_.fetch_sub(1); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    // False beyond the limit: the call is to be refused.
    bool is_open() const { return is_open_; }

   private:
    CallGate& gate_;
    const bool is_open_;
  };

  explicit CallGate(int limit) : limit_(limit) {}

  int under_way() const { return under_way_.load(); }
  int limit() const { return limit_; }

 private:
  const int limit_;
  // Refused ones included, until they have ended.
  std::atomic<int> under_way_ = 0;
};

// ResourceExhausted (overloaded): what a call beyond the limit is told.
absl::Status TooManyCalls(const CallGate& gate);

}  // namespace cipherd::server
