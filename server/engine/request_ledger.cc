#include "server/engine/request_ledger.h"

namespace cipherd::engine {

uint64_t RequestLedger::Counts::FinishedIn(RequestState state) const {
  uint64_t sum = 0;
  for (const auto& [key, count] : finished) {
    if (key.first == state) sum += count;
  }
  return sum;
}

bool RequestLedger::Counts::Balances() const {
  uint64_t sum = in_flight;
  for (const auto& [key, count] : finished) sum += count;
  return accepted == sum;
}

void RequestLedger::Enter(std::string_view program) {
  absl::MutexLock lock(&mu_);
  Counts& counts = counts_[std::string(program)];
  ++counts.accepted;
  ++counts.in_flight;
  ++in_flight_;
}

void RequestLedger::Close(std::string_view program, RequestState terminal, absl::StatusCode code) {
  absl::MutexLock lock(&mu_);
  Counts& counts = counts_[std::string(program)];
  --counts.in_flight;
  --in_flight_;
  ++counts.finished[{terminal, code}];
}

std::map<std::string, RequestLedger::Counts> RequestLedger::Snapshot() const {
  absl::MutexLock lock(&mu_);
  return {counts_.begin(), counts_.end()};
}

uint64_t RequestLedger::in_flight() const {
  absl::MutexLock lock(&mu_);
  return in_flight_;
}

bool RequestLedger::AwaitIdle(absl::Duration timeout) const {
  const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return in_flight_ == 0; };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&is_idle), timeout);
}

}  // namespace cipherd::engine
