#include "client/cancellation.h"

#include <utility>

namespace cipherd::client {

Cancellation::Scope::Scope(std::shared_ptr<Cancellation> cancellation,
                           std::function<void()> on_cancel)
    : cancellation_(std::move(cancellation)) {
  if (cancellation_ == nullptr) return;
  absl::MutexLock lock(&cancellation_->mu_);
  place_ = cancellation_->on_cancel_.insert(cancellation_->on_cancel_.end(), std::move(on_cancel));
  if (cancellation_->is_cancelled_) (*place_)();
}

Cancellation::Scope::~Scope() {
  if (cancellation_ == nullptr) return;
  absl::MutexLock lock(&cancellation_->mu_);
  cancellation_->on_cancel_.erase(place_);
}

void Cancellation::Cancel() {
  absl::MutexLock lock(&mu_);
  if (std::exchange(is_cancelled_, true)) return;
  for (const std::function<void()>& on_cancel : on_cancel_) on_cancel();
}

bool Cancellation::is_cancelled() const {
  absl::MutexLock lock(&mu_);
  return is_cancelled_;
}

bool Cancellation::WaitFor(absl::Duration duration) const {
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithTimeout(absl::Condition(&is_cancelled_), duration);
}

}  // namespace cipherd::client
