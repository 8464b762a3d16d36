// One evaluation from its header to its reply: the state machine, the leases that it holds, and the
// count that it is in.
//
// Made by Engine::Open, when it is entered in the ledger. request_state.h says who is in charge in
// each state; only that one calls Finish from there, and it alone touches leases and times, but for
// early outputs (OutputListener). Cancel may be called by anyone at any time. At its terminal state
// a request gives every lease back and is closed in the ledger, exactly once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/value/value_tree.h"
#include "server/engine/key_set.h"
#include "server/engine/key_set_ticket.h"
#include "server/engine/pinned_pool.h"
#include "server/engine/request_ledger.h"
#include "server/engine/request_state.h"
#include "server/engine/served_program.h"
#include "server/engine/stage_times.h"
#include "server/engine/tenant_quotas.h"

namespace cipherd::engine {

struct RequestHead {
  std::string program;
  // 0: the newest one that is ready.
  int64_t version = 0;
  std::string tenant;
  // 64 hexadecimal digits.
  std::string key_set_id;
  // For logs.
  std::string request_id;
  absl::Time deadline = absl::InfiniteFuture();
};

class Request {
 public:
  // Called once per submitted request, with OK in state kReplying or with the error that it ended
  // with. On the thread that made the transition: must not block.
  using Continuation = std::function<void(const absl::Status&)>;

  // `label` is the program's name in the ledger, which outlives the request, as does `clock`.
  Request(RequestHead head, std::string_view label, RequestLedger& ledger,
          const base::Clock& clock);
  // A request that was not finished is a fault: logged, and closed as Internal.
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  const RequestHead& head() const { return head_; }
  RequestState state() const { return state_.load(std::memory_order_acquire); }

  // What admission grants (Engine::Admit, in kReceiving).
  // `keys` is null for a program that reads none.
  void Grant(std::shared_ptr<ServedProgram> program, std::shared_ptr<KeySetTicket> keys,
             PinnedPool::Lease trees, TenantQuotas::Admission admission = {})
      ABSL_LOCKS_EXCLUDED(mu_);
  // The key set has been compared with what the program reads; else it is unknown here yet, and is
  // compared when it has been found.
  void set_keys_fit(bool fit) { keys_fit_ = fit; }
  bool keys_fit() const { return keys_fit_; }
  // The key set is in host memory; before the request is queued.
  void set_keys(KeySetRef keys) { keys_ = std::move(keys); }
  // The rest of this paragraph requires a grant.
  ServedProgram& program() const { return *program_; }
  // Null where the program reads none.
  std::shared_ptr<KeySetTicket> key_ticket() const ABSL_LOCKS_EXCLUDED(mu_);
  // From kQueued on.
  const KeySetRef& keys() const { return keys_; }
  // Pinned. Written by the RPC in kReceiving, read by the RPC in kReplying, or earlier where it has
  // been told of early outputs.
  const value::ValueTree& inputs() const { return trees_->inputs; }
  const value::ValueTree& outputs() const { return trees_->outputs; }

  StageTimes& times() { return times_; }
  // Zeros unless the engine records timelines.
  const DeviceTimeline& timeline() const { return timeline_; }
  void set_timeline(const DeviceTimeline& timeline) { timeline_ = timeline; }

  // Sets who is told of the result. In kReceiving.
  void set_continuation(Continuation continuation) { continuation_ = std::move(continuation); }

  // Asks for outputs as they are computed. Called with a growing `count`, unless the end is near
  // enough to be told instead: the first `count` of outputs() are there. On the worker's thread, in
  // kExecuting: must not block. It may get at outputs() only while it runs, and keep reading what
  // those tensors hold until the continuation is called: until then their lease stays. The last
  // output comes with the continuation.
  using OutputListener = std::function<void(size_t count)>;
  // In kReceiving.
  void set_output_listener(OutputListener listener) { output_listener_ = std::move(listener); }
  bool wants_early_outputs() const { return output_listener_ != nullptr; }
  // In kExecuting, by the worker. Says nothing to a request that is about to end early.
  void TellOutputs(size_t count);

  // Asks for an early end; takes effect where the one in charge next looks.
  void RequestCancel() { cancel_requested_.store(true, std::memory_order_release); }
  // Cancelled, DeadlineExceeded, or OK.
  absl::Status CheckAlive() const;

  // Moves from `from` to `to`; false where the state is no longer `from`. Fatal unless the table
  // has the transition.
  bool Advance(RequestState from, RequestState to);

  // Ends in the terminal state for `status`; false where the state is no longer `from`. Gives back
  // the leases, closes the ledger entry and then, from kQueued and kExecuting, tells the
  // continuation (before the trees go back, where somebody may be reading early outputs).
  bool Finish(RequestState from, const absl::Status& status);

  // The same, from kReceiving, of a request that was submitted and could not be queued: its
  // continuation is told, too.
  void FinishUnqueued(const absl::Status& status);

  // Tells the continuation that the result is there. In kReplying, by the worker, once.
  void ContinueWithResult();

  // When it was queued; set by the scheduler.
  absl::Time queued_at() const { return queued_at_; }
  void set_queued_at(absl::Time time) { queued_at_ = time; }

 private:
  const RequestHead head_;
  const std::string label_;
  RequestLedger& ledger_;
  const base::Clock& clock_;
  std::atomic<RequestState> state_ = RequestState::kReceiving;
  std::atomic<bool> cancel_requested_ = false;

  // Of whoever is in charge.
  std::shared_ptr<ServedProgram> program_;
  TenantQuotas::Admission admission_;
  KeySetRef keys_;
  bool keys_fit_ = false;
  PinnedPool::Lease trees_;
  StageTimes times_;
  DeviceTimeline timeline_;
  absl::Time queued_at_;
  Continuation continuation_;
  OutputListener output_listener_;

  mutable absl::Mutex mu_;
  // Also of whoever cancels.
  std::shared_ptr<KeySetTicket> key_ticket_ ABSL_GUARDED_BY(mu_);
};

using RequestPtr = std::shared_ptr<Request>;

}  // namespace cipherd::engine
