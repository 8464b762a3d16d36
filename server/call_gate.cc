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
  Leave();
}

bool CallGate::Pass::CountTenant(const std::string& tenant) {
  absl::MutexLock lock(&gate_.mu_);
  const Count count = gate_.tenants_.try_emplace(tenant).first;
  if (count->second >= gate_.limits_.max_calls_per_tenant) {
    // Who is refused takes nobody's place, also not while he is told.
    Leave();
    refused_by_ = &CallLimits::max_calls_per_tenant;
    return false;
  }
  ++count->second;
  tenant_ = count;
  return true;
}

void CallGate::Pass::Leave() {
  --gate_.under_way_;
  if (--caller_->second == 0) gate_.callers_.erase(caller_);
  if (tenant_.has_value() && --(*tenant_)->second == 0) gate_.tenants_.erase(*tenant_);
}

int CallGate::under_way() const {
  absl::MutexLock lock(&mu_);
  return under_way_;
}

absl::Status TooManyCalls(const CallGate::Pass& pass) {
  const CallLimits& limits = pass.gate_.limits();
  const char* const who = pass.refused_by_ == &CallLimits::max_calls              ? "the daemon"
                          : pass.refused_by_ == &CallLimits::max_calls_per_caller ? "the caller"
                                                                                  : "the tenant";
  return engine::WithReason(absl::ResourceExhaustedError(absl::StrCat(
                                who, " has ", limits.*pass.refused_by_, " calls under way")),
                            engine::FailureReason::kOverloaded);
}

}  // namespace cipherd::server
