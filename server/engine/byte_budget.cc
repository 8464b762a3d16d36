#include "server/engine/byte_budget.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/failure_reason.h"

namespace cipherd::engine {

void ByteBudget::Charge::ShrinkTo(int64_t bytes) {
  if (budget_ == nullptr || bytes >= bytes_) return;
  absl::MutexLock lock(&budget_->mu_);
  budget_->used_bytes_ -= std::exchange(bytes_, bytes) - bytes;
}

void ByteBudget::Charge::Release() {
  if (ByteBudget* budget = std::exchange(budget_, nullptr)) {
    absl::MutexLock lock(&budget->mu_);
    budget->used_bytes_ -= std::exchange(bytes_, 0);
  }
}

absl::StatusOr<ByteBudget::Charge> ByteBudget::Reserve(int64_t bytes) {
  if (bytes < 0 || bytes > limit_bytes_) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          label_, ": asked for ", bytes, " bytes, the limit is ", limit_bytes_)),
                      FailureReason::kLimitExceeded);
  }
  absl::MutexLock lock(&mu_);
  const int64_t available = limit_bytes_ - used_bytes_;
  if (bytes > available) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(label_, ": asked for ", bytes,
                                                                " bytes, ", available, " of ",
                                                                limit_bytes_, " are available")),
                      FailureReason::kOverloaded);
  }
  used_bytes_ += bytes;
  return Charge(this, bytes);
}

int64_t ByteBudget::used_bytes() const {
  absl::MutexLock lock(&mu_);
  return used_bytes_;
}

}  // namespace cipherd::engine
