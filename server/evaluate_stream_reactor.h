// EvaluateStream: one evaluation of any size, header and chunks each way.
//
// The client's half-close says that its payload is complete. At most one message each way is in
// memory besides the pinned trees, and a client that sends or reads none for too long is let go.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "cipherd/v1/evaluation.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/evaluation_reactor.h"

namespace cipherd::server {

class EvaluateStreamReactor final : public EvaluationReactor {
 public:
  EvaluateStreamReactor(const ServiceEnvironment& environment,
                        grpc::CallbackServerContext& context);

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Receive(grpc::ByteBuffer& bytes) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnStall() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NothingCame() const override;
  void Reply() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Write(const v1::EvaluateStreamResponse& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // gRPC reads it while a write is under way.
  grpc::ByteBuffer write_bytes_;
  bool has_stalled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace cipherd::server
