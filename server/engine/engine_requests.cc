// The part of Engine that takes requests from their headers to the scheduler's queue.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "server/engine/engine.h"
#include "server/engine/failure_reason.h"
#include "server/engine/shown_program.h"

namespace cipherd::engine {
namespace {

// The ledger's label for requests of programs that are not here.
constexpr std::string_view kUnknownProgramLabel = "unknown";

}  // namespace

RequestPtr Engine::Open(RequestHead head) {
  std::string label = head.program;
  absl::StatusOr<ServedPtr> served = FindProgram(head.program, head.version);
  // A version that is not here counts under its program all the same.
  if (!served.ok() && head.version != 0) served = FindProgram(head.program);
  if (served.ok()) {
    const ServingSettings& settings = (*served)->settings();
    const absl::Time now = clock_.Now();
    if (head.deadline == absl::InfiniteFuture()) head.deadline = now + settings.default_timeout;
    head.deadline = std::min(head.deadline, now + settings.longest_timeout);
  } else {
    label = kUnknownProgramLabel;
    head.program = ShownName(head.program);
  }
  return std::make_shared<Request>(std::move(head), label, ledger_, clock_);
}

absl::Status Engine::Admit(Request& request, const Program* only) {
  CIPHERD_RETURN_IF_ERROR(request.CheckAlive());
  if (is_draining()) {
    return WithReason(absl::UnavailableError("the daemon is draining"),
                      FailureReason::kUnavailable);
  }
  const RequestHead& head = request.head();
  std::optional<TenantQuotas::Admission> admission;
  while (true) {
    CIPHERD_ASSIGN_OR_RETURN(ServedPtr program, FindReady(head, only));
    const ProgramInfo& info = program->info();
    if (!admission.has_value()) {
      CIPHERD_ASSIGN_OR_RETURN(admission,
                               quotas_.Admit(head.tenant, info.input_bytes + info.output_bytes));
    }
    const bool reads_keys = info.keys.size() > 0 || !head.key_set_id.empty();
    bool keys_fit = !reads_keys;
    if (reads_keys) {
      const absl::StatusOr<KeySetInfoRef> keys = key_store_->Find(head.tenant, head.key_set_id);
      if (keys.ok()) {
        CIPHERD_RETURN_IF_ERROR(CheckKeysFit(**keys, info.keys, info.context_id));
        keys_fit = true;
      } else if (head.key_set_id.empty() || !key_store_->looks_for_unknown_sets()) {
        return keys.status();
      }
    }
    std::optional<PinnedPool::Lease> trees = program->trees().TryLease();
    if (trees.has_value()) {
      request.Grant(std::move(program),
                    reads_keys ? key_store_->Acquire(head.tenant, head.key_set_id) : nullptr,
                    *std::move(trees), *std::move(admission));
      request.set_keys_fit(keys_fit);
      return absl::OkStatus();
    }
    // Where another version has taken its place meanwhile, that one serves.
    if (program->is_retired()) continue;
    return WithReason(absl::ResourceExhaustedError(absl::StrCat("program '", head.program,
                                                                "': all ", program->trees().size(),
                                                                " places for requests are taken")),
                      FailureReason::kOverloaded);
  }
}

absl::StatusOr<Engine::ServedPtr> Engine::FindReady(const RequestHead& head,
                                                    const Program* only) const {
  ServedPtr program;
  if (only != nullptr) {
    program = Find(*only);
  } else {
    CIPHERD_ASSIGN_OR_RETURN(program, FindProgram(head.program, head.version));
  }
  if (program != nullptr && program->is_ready()) return program;
  return WithReason(
      absl::UnavailableError(absl::StrCat("program '", head.program, "'",
                                          ShownVersion(head.version), " is not ready")),
      FailureReason::kUnavailable);
}

void Engine::Submit(const RequestPtr& request, Request::Continuation continuation) {
  request->set_continuation(std::move(continuation));
  const std::shared_ptr<KeySetTicket> ticket = request->key_ticket();
  if (ticket == nullptr) {
    Enqueue(request, no_keys_);
    return;
  }
  // Most are resident, and need nobody to call back.
  if (const absl::StatusOr<KeySetRef>* const keys = ticket->result(); keys != nullptr) {
    Enqueue(request, *keys);
    return;
  }
  ticket->Await([this, request](const absl::StatusOr<KeySetRef>& keys) { Enqueue(request, keys); });
  // Who cancelled before the ticket was there has not told it.
  if (ticket->is_resolved()) return;
  if (const absl::Status alive = request->CheckAlive(); !alive.ok()) ticket->Abandon(alive);
}

void Engine::Enqueue(const RequestPtr& request, const absl::StatusOr<KeySetRef>& keys) {
  absl::Status status = keys.status();
  if (keys.ok() && !request->keys_fit()) {
    const ProgramInfo& info = request->program().info();
    status = CheckKeysFit(*(*keys)->info, info.keys, info.context_id);
  }
  if (status.ok()) {
    request->set_keys(*keys);
    status = scheduler_->Enqueue(request);
  }
  if (!status.ok()) request->FinishUnqueued(status);
}

void Engine::Cancel(const RequestPtr& request) {
  scheduler_->Cancel(request);
  // One that waits for its keys waits no longer.
  if (const auto ticket = request->key_ticket(); ticket != nullptr && !ticket->is_resolved()) {
    ticket->Abandon(request->CheckAlive());
  }
}

}  // namespace cipherd::engine
