// Evaluate: one evaluation in one message each way, received as a stream of one (told_early.h).
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/evaluation_reactor.h"

namespace cipherd::server {

class EvaluateReactor final : public EvaluationReactor {
 public:
  EvaluateReactor(const ServiceEnvironment& environment, grpc::CallbackServerContext& context)
      : EvaluationReactor("Evaluate", environment, context) {
    Start();
  }

 private:
  absl::Status Receive(grpc::ByteBuffer& bytes) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnStall() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NothingCame() const override;
  void Reply() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Status EncodeResult() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // gRPC reads it until the call is done.
  grpc::ByteBuffer response_;
};

}  // namespace cipherd::server
