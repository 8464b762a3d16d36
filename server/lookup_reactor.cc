#include "server/lookup_reactor.h"

#include "proto/codec/error_detail.h"

namespace cipherd::server {

absl::Status LookupReactor::Receive(grpc::ByteBuffer& bytes) {
  if (has_message_) {
    return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "message", "expected one, got another");
  }
  has_message_ = true;
  message_.Swap(&bytes);
  return absl::OkStatus();
}

void LookupReactor::OnHalfClose() {
  Caller caller;
  {
    absl::MutexLock lock(&mu_);
    if (is_finished_) return;
    if (!has_message_) {
      FinishWith(codec::Refuse(v1::ERROR_REASON_PROTOCOL, "message", "expected one, got none"));
      return;
    }
    caller = this->caller();
  }
  // Not under the lock: it may reply before it returns.
  answer_(caller, message_, [this](const absl::Status& status, grpc::ByteBuffer message) {
    End(status, std::move(message));
  });
}

void LookupReactor::End(const absl::Status& status, grpc::ByteBuffer message) {
  absl::MutexLock lock(&mu_);
  if (!status.ok()) {
    FinishWith(status);
    return;
  }
  response_ = std::move(message);
  FinishWithLast(response_);
}

void LookupReactor::OnStall() { FinishWith(Stalled(environment_.stalls, "the request's message")); }

}  // namespace cipherd::server
