// ModelInfer: one evaluation in one message each way, as the Open Inference Protocol says it.
//
// Received as a stream of one message (inference_service.h): room for the largest message is
// charged before any of it is read, and a client that does not send it for too long is let go. Once
// its tensors are in pinned memory the message is gone, and what is charged is the result's size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/engine/byte_budget.h"
#include "server/evaluation_reactor.h"
#include "server/options.h"

namespace cipherd::server {

class ModelInferReactor final : public EvaluationReactor {
 public:
  // `messages` outlives this.
  ModelInferReactor(const ServiceEnvironment& environment, const InferenceOptions& options,
                    engine::ByteBudget& messages, grpc::CallbackServerContext& context);

 private:
  absl::Status Receive(grpc::ByteBuffer& bytes) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnStall() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NothingCame() const override;
  void Reply() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Status EncodeResult() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t max_payload_bytes_;
  engine::ByteBudget::Charge charge_;
  // gRPC reads it until the call is done.
  grpc::ByteBuffer response_;
  // Of the request.
  std::string id_;
  std::vector<bool> wanted_outputs_;
};

}  // namespace cipherd::server
