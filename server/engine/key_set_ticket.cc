#include "server/engine/key_set_ticket.h"

#include <utility>

namespace cipherd::engine {

void KeySetTicket::Await(Continuation continuation) {
  std::optional<absl::StatusOr<KeySetRef>> result;
  {
    absl::MutexLock lock(&mu_);
    if (!result_.has_value()) {
      continuation_ = std::move(continuation);
      return;
    }
    result = result_;
  }
  continuation(*result);
}

void KeySetTicket::Resolve(absl::StatusOr<KeySetRef> result) {
  Continuation continuation;
  {
    absl::MutexLock lock(&mu_);
    if (result_.has_value()) return;
    result_ = result;
    continuation = std::exchange(continuation_, nullptr);
  }
  if (continuation) continuation(result);
}

const absl::StatusOr<KeySetRef>* KeySetTicket::result() const {
  absl::MutexLock lock(&mu_);
  return result_.has_value() ? &*result_ : nullptr;
}

}  // namespace cipherd::engine
