// What calls have in common that receive a stream of messages: a place among the calls that are
// under way, the caller, the lock on which gRPC, the stall watch and the engine meet, one read
// after another, and one end.
//
//   class PutKeysReactor final : public StreamReactor<grpc::ServerReadReactor<grpc::ByteBuffer>> {
//    public:
//     PutKeysReactor(...) : StreamReactor("PutKeys", environment, context, environment.calls) {
//       Start();
//     }
//
//    private:
//     absl::Status Receive(grpc::ByteBuffer& bytes) override;
//     ...
//   };
//
// Lives from the call's arrival until gRPC is done with it. Never blocks. gRPC runs one reaction at
// a time, but for OnCancel. `Reactor` is gRPC's, over byte buffers (wire_message.h says why).
#pragma once

#include <optional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/base/status_macros.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/call_gate.h"
#include "server/caller.h"
#include "server/evaluation.h"
#include "server/rpc_scope.h"
#include "server/stall_watch.h"

namespace cipherd::server {

template <typename Reactor>
class StreamReactor : public Reactor {
 public:
  void OnReadDone(bool ok) final ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      // The client of a call that has ended is waited for until it takes the status, whatever it
      // sends.
      if (is_finished_) return;
      Rest();
      if (ok) {
        const absl::Status status = Receive(read_bytes_);
        if (status.ok()) {
          Read();
        } else {
          FinishWith(status);
        }
        return;
      }
    }
    OnHalfClose();
  }

  void OnDone() final ABSL_LOCKS_EXCLUDED(mu_) {
    // Whoever finished the call on another thread has let go of the lock by now.
    { absl::MutexLock lock(&mu_); }
    // Before the derived object goes, which OnStall belongs to.
    stall_.reset();
    delete this;
  }

 protected:
  // `method` is a literal. The call's place is one of `gate`.
  StreamReactor(std::string_view method, const ServiceEnvironment& environment,
                grpc::CallbackServerContext& context, CallGate& gate)
      : environment_(environment),
        context_(context),
        rpc_(method, context, environment.metrics, environment.engine.clock()),
        pass_(gate, CallerKey(context)) {
    // Does not call before Start.
    stall_.emplace(environment.stalls, mu_, [this] {
      mu_.AssertHeld();
      if (is_finished_) {
        // The client does not take the status.
        context_.TryCancel();
      } else {
        OnStall();
      }
    });
  }

  // Reads, or turns the call away where there is no place for it, its caller is nobody, or
  // `prepare`, which is asked after that, says why not. For the end of the constructor of the class
  // that is made: gRPC reacts when that has returned, the stall watch from here on.
  void Start(absl::FunctionRef<absl::Status()> prepare = [] { return absl::OkStatus(); })
      ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (const absl::Status status = Admit(prepare); status.ok()) {
      Read();
    } else {
      FinishWith(status);
    }
  }

  // The next message from the client; the call ends with an error.
  virtual absl::Status Receive(grpc::ByteBuffer& bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // The client has sent all that it will, or has gone. The call may have ended meanwhile.
  virtual void OnHalfClose() ABSL_LOCKS_EXCLUDED(mu_) = 0;
  // The peer was waited for too long, and the call has not ended. Must not block.
  virtual void OnStall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // The call ends with `status`: gives back what it holds before the client hears of it.
  virtual void Release(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;

  // Once. The client has the watch's time to take the status.
  void FinishWith(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    is_finished_ = true;
    Release(status);
    AwaitPeer();
    this->Finish(rpc_.Close(status));
  }

  // The same with OK and a last message, which stays until the call is done. For reactors that
  // write.
  void FinishWithLast(const grpc::ByteBuffer& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    is_finished_ = true;
    Release(absl::OkStatus());
    AwaitPeer();
    this->StartWriteAndFinish(&message, grpc::WriteOptions(), rpc_.Close(absl::OkStatus()));
  }

  // A write has been started; and is done.
  void AwaitPeer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { stall_->AwaitPeer(); }
  void Rest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { stall_->Rest(); }

  // Once started, of a call that was not turned away.
  const Caller& caller() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return *caller_; }

  const ServiceEnvironment& environment_;
  grpc::CallbackServerContext& context_;
  RpcScope rpc_;
  absl::Mutex mu_;
  bool is_finished_ ABSL_GUARDED_BY(mu_) = false;

 private:
  absl::Status Admit(absl::FunctionRef<absl::Status()> prepare) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!pass_.is_open()) return TooManyCalls(pass_);
    CIPHERD_ASSIGN_OR_RETURN(caller_, environment_.callers.Identify(context_));
    // Where a token names the tenant, the caller may be a gateway of many.
    if (environment_.callers.need_tokens() && !pass_.CountTenant(caller_->tenant)) {
      return TooManyCalls(pass_);
    }
    return prepare();
  }

  void Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    AwaitPeer();
    this->StartRead(&read_bytes_);
  }

  CallGate::Pass pass_ ABSL_GUARDED_BY(mu_);
  std::optional<Caller> caller_ ABSL_GUARDED_BY(mu_);
  // gRPC writes it while a read is under way.
  grpc::ByteBuffer read_bytes_;
  // There until gRPC is done.
  std::optional<StallWatch::Call> stall_;
};

}  // namespace cipherd::server
