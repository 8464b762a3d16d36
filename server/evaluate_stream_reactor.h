// EvaluateStream: one evaluation of any size, header and chunks each way.
//
//   kReceiving --half-close--> kRunning --result--> kReplying --last chunk--> kFinished
//       |                         |                     |                         ^
//       +------- any error -------+---------------------+-------------------------+
//
// The client's half-close says that its payload is complete. At most one message each way is in
// memory besides the pinned trees, and a client that sends or reads none for too long is let go.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cipherd/v1/evaluation.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/call_gate.h"
#include "server/evaluation.h"
#include "server/rpc_scope.h"
#include "server/stall_watch.h"

namespace cipherd::server {

// Lives from the call's arrival until gRPC is done with it. Never blocks. gRPC runs one reaction at
// a time, but for OnCancel.
class EvaluateStreamReactor final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  EvaluateStreamReactor(const ServiceEnvironment& environment,
                        grpc::CallbackServerContext& context);

  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnCancel() override { evaluation_.Cancel(); }
  void OnDone() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  enum class State : uint8_t { kReceiving, kRunning, kReplying, kFinished };

  // The next message from the client.
  absl::Status Receive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The client has sent all that it will, or has gone.
  void OnHalfClose() ABSL_LOCKS_EXCLUDED(mu_);
  // The evaluation has come to `status`.
  void OnResult(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  void OnStall() ABSL_LOCKS_EXCLUDED(mu_);
  void Write(const v1::EvaluateStreamResponse& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishWith(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ServiceEnvironment& environment_;
  grpc::CallbackServerContext& context_;
  RpcScope rpc_;
  const CallGate::Pass pass_;
  // gRPC writes the one while a read is under way, and reads the other while a write is.
  grpc::ByteBuffer read_bytes_;
  grpc::ByteBuffer write_bytes_;
  Evaluation evaluation_;

  // What gRPC calls, the stall watch and the engine meet here.
  absl::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kReceiving;
  bool has_stalled_ ABSL_GUARDED_BY(mu_) = false;

  // Last, so that it ends first.
  StallWatch::Call stall_;
};

}  // namespace cipherd::server
