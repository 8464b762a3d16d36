#include "server/call_gate.h"

#include "absl/strings/str_cat.h"
#include "server/engine/failure_reason.h"

namespace cipherd::server {

CallGate::Pass::Pass(CallGate& gate, const std::string& caller) : gate_(gate) {
  absl::MutexLock lock(&gate_.mu_);
  if (gate_.under_way_ >= gate_.limits_.max_calls) {
    refused_by_ = &CallLimits::max_calls;
    return;
  }
  caller_ = gate_.callers_.try_emplace(caller).first;
  if (caller_->second >= gate_.limits_.max_calls_per_caller) {
    refused_by_ = &CallLimits::max_calls_per_caller;
    return;
  }
  ++gate_.under_way_;
  ++caller_->second;
}

CallGate::Pass::~Pass() {
  if (!is_open()) return;
  absl::MutexLock lock(&gate_.mu_);
  --gate_.under_way_;
  if (--caller_->second == 0) gate_.callers_.erase(caller_);
}

int CallGate::under_way() const {
  absl::MutexLock lock(&mu_);
  return under_way_;
}

absl::Status TooManyCalls(const CallGate::Pass& pass) {
  const CallLimits& limits = pass.gate_.limits();
  return engine::WithReason(
      absl::ResourceExhaustedError(
          absl::StrCat(pass.refused_by_ == &CallLimits::max_calls ? "the daemon" : "the caller",
                       " has ", limits.*pass.refused_by_, " calls under way")),
      engine::FailureReason::kOverloaded);
}

}  // namespace cipherd::server
