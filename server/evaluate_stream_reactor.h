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
#include "absl/status/status.h"
#include "cipherd/v1/evaluation.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/evaluation.h"
#include "server/stream_reactor.h"

namespace cipherd::server {

class EvaluateStreamReactor final
    : public StreamReactor<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  EvaluateStreamReactor(const ServiceEnvironment& environment,
                        grpc::CallbackServerContext& context);

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnCancel() override { evaluation_.Cancel(); }

 private:
  enum class State : uint8_t { kReceiving, kRunning, kReplying };

  absl::Status Receive(grpc::ByteBuffer& bytes) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnHalfClose() override ABSL_LOCKS_EXCLUDED(mu_);
  void OnStall() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(const absl::Status& status) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The evaluation has come to `status`.
  void OnResult(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  void Write(const v1::EvaluateStreamResponse& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // gRPC reads it while a write is under way.
  grpc::ByteBuffer write_bytes_;
  Evaluation evaluation_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kReceiving;
  bool has_stalled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace cipherd::server
