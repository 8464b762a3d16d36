#include "server/evaluation_reactor.h"

namespace cipherd::server {

void EvaluationReactor::OnHalfClose() {
  {
    absl::MutexLock lock(&mu_);
    if (is_finished_) return;
    if (context_.IsCancelled()) {
      FinishWith(absl::CancelledError("the client left before its inputs were complete"));
      return;
    }
    if (!evaluation_.has_begun()) {
      FinishWith(NothingCame());
      return;
    }
    state_ = State::kRunning;
  }
  // Continues on whatever thread has the result, maybe before it returns.
  evaluation_.Submit([this](const absl::Status& status) { OnResult(status); }, OutputListener());
}

void EvaluationReactor::OnResult(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (!status.ok()) {
    Fail(status);
    return;
  }
  state_ = State::kReplying;
  Reply();
}

}  // namespace cipherd::server
