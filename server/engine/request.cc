#include "server/engine/request.h"

#include "absl/base/internal/raw_logging.h"
#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {

Request::Request(RequestHead head, std::string_view label, RequestLedger& ledger,
                 const base::Clock& clock)
    : head_(std::move(head)), label_(label), ledger_(ledger), clock_(clock) {
  ledger_.Enter(label_);
}

Request::~Request() {
  const RequestState state = this->state();
  if (IsTerminal(state)) return;
  spdlog::error("request '{}' of program '{}' was dropped while {}", head_.request_id, label_,
                ToString(state));
  ledger_.Close(label_, RequestState::kFailed, absl::StatusCode::kInternal);
}

void Request::Grant(std::shared_ptr<ServedProgram> program, std::shared_ptr<KeySetTicket> keys,
                    PinnedPool::Lease trees, TenantQuotas::Admission admission) {
  program_ = std::move(program);
  admission_ = std::move(admission);
  trees_ = std::move(trees);
  absl::MutexLock lock(&mu_);
  key_ticket_ = std::move(keys);
}

std::shared_ptr<KeySetTicket> Request::key_ticket() const {
  absl::MutexLock lock(&mu_);
  return key_ticket_;
}

absl::Status Request::CheckAlive() const {
  if (clock_.Now() >= head_.deadline) {
    return absl::DeadlineExceededError(
        absl::StrCat("the deadline passed while the request was ", std::string(ToString(state()))));
  }
  if (cancel_requested_.load(std::memory_order_acquire)) {
    return absl::CancelledError(
        absl::StrCat("cancelled while the request was ", std::string(ToString(state()))));
  }
  return absl::OkStatus();
}

bool Request::Advance(RequestState from, RequestState to) {
  if (!CanAdvance(from, to)) {
    ABSL_INTERNAL_LOG(
        FATAL, absl::StrCat("request: no transition from ", std::string(ToString(from)), " to ",
                            std::string(ToString(to))));
  }
  return state_.compare_exchange_strong(from, to, std::memory_order_acq_rel);
}

bool Request::Finish(RequestState from, const absl::Status& status) {
  const RequestState terminal = TerminalStateFor(from, status);
  // Whoever wins the transition owns what is below.
  if (!Advance(from, terminal)) return false;
  PinnedPool::Lease trees = std::move(trees_);
  // Whoever reads early outputs may not any more once it has been told of the end.
  const bool may_be_read = from == RequestState::kExecuting && wants_early_outputs();
  if (!may_be_read) trees.Return();
  keys_.reset();
  admission_.Release();
  {
    absl::MutexLock lock(&mu_);
    key_ticket_.reset();
  }
  ledger_.Close(label_, terminal, status.code());
  const Continuation continuation = std::exchange(continuation_, nullptr);
  const bool is_awaited = from == RequestState::kQueued || from == RequestState::kExecuting;
  if (is_awaited && continuation) continuation(status);
  trees.Return();
  return true;
}

void Request::FinishUnqueued(const absl::Status& status) {
  const Continuation continuation = std::exchange(continuation_, nullptr);
  Finish(RequestState::kReceiving, status);
  if (continuation) continuation(status);
}

void Request::TellOutputs(size_t count) {
  if (CheckAlive().ok()) output_listener_(count);
}

void Request::ContinueWithResult() {
  if (const Continuation continuation = std::exchange(continuation_, nullptr)) {
    continuation(absl::OkStatus());
  }
}

}  // namespace cipherd::engine
