#include "server/stall_watch.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/failure_reason.h"

namespace cipherd::server {
namespace {

constexpr absl::Duration kCheckInterval = absl::Milliseconds(200);

}  // namespace

StallWatch::Call::Call(StallWatch& watch, absl::Mutex& mu, std::function<void()> on_stall)
    : watch_(watch), mu_(mu), on_stall_(std::move(on_stall)) {
  absl::MutexLock lock(&watch_.mu_);
  position_ = watch_.calls_.insert(watch_.calls_.end(), this);
}

StallWatch::Call::~Call() {
  absl::MutexLock lock(&watch_.mu_);
  watch_.calls_.erase(position_);
}

void StallWatch::Call::AwaitPeer() {
  deadline_ns_.store(absl::ToUnixNanos(watch_.clock_.Now() + watch_.timeout_),
                     std::memory_order_relaxed);
}

StallWatch::StallWatch(absl::Duration timeout, const base::Clock& clock)
    : timeout_(timeout),
      clock_(clock),
      thread_("stall watch", {.interval = kCheckInterval, .run = [this] { Check(); }}) {}

void StallWatch::Check() {
  const int64_t now = absl::ToUnixNanos(clock_.Now());
  absl::MutexLock lock(&mu_);
  for (Call* call : calls_) {
    int64_t deadline = call->deadline_ns_.load(std::memory_order_relaxed);
    if (deadline > now) continue;
    // Unless the peer has just moved; or does before the lock is had.
    if (!call->deadline_ns_.compare_exchange_strong(deadline, Call::kOver)) continue;
    absl::MutexLock call_lock(&call->mu_);
    if (call->has_stalled()) call->on_stall_();
  }
}

absl::Status Stalled(const StallWatch& watch, std::string_view what) {
  return engine::WithReason(
      absl::DeadlineExceededError(absl::StrCat("waited ", absl::FormatDuration(watch.timeout()),
                                               " for ", std::string(what))),
      engine::FailureReason::kStalled);
}

}  // namespace cipherd::server
