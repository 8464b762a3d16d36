// ModelInfer: one evaluation in one message each way, as the Open Inference Protocol says it.
//
//   kReceiving --half-close--> kRunning --result, or any error--> kFinished
//       |                                                             ^
//       +---------------------------- any error ----------------------+
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
#include "grpcpp/support/server_callback.h"
#include "server/engine/byte_budget.h"
#include "server/evaluation.h"
#include "server/options.h"
#include "server/stream_reactor.h"

namespace cipherd::server {

class ModelInferReactor final
    : public StreamReactor<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  // `messages` outlives this.
  ModelInferReactor(const ServiceEnvironment& environment, const InferenceOptions& options,
                    engine::ByteBudget& messages, grpc::CallbackServerContext& context);

  void OnCancel() override { evaluation_.Cancel(); }

 private:
  enum class State : uint8_t { kReceiving, kRunning };

  absl::Status Receive(grpc::ByteBuffer& bytes) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnHalfClose() override ABSL_LOCKS_EXCLUDED(mu_);
  void OnStall() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(const absl::Status& status) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The evaluation has come to `status`.
  void OnResult(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status EncodeResult() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t max_payload_bytes_;
  engine::ByteBudget::Charge charge_;
  // gRPC reads it until the call is done.
  grpc::ByteBuffer response_;
  Evaluation evaluation_;
  // Of the request.
  std::string id_;
  std::vector<bool> wanted_outputs_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kReceiving;
};

}  // namespace cipherd::server
