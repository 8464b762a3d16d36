// inference.GRPCInferenceService, the Open Inference Protocol, beside the daemon's own service and
// over the same engine: a model is a program. proto/WIRE_FORMAT.md says what its messages mean
// here.
#pragma once

#include "grpcpp/support/byte_buffer.h"
#include "inference/grpc_service.grpc.pb.h"
#include "server/engine/byte_budget.h"
#include "server/evaluation.h"
#include "server/health_service.h"
#include "server/options.h"

namespace cipherd::server {
namespace internal {

// Every method takes and gives bytes, for the reason that wire_message.h gives.
using OpenInference = inference::GRPCInferenceService;
using RawInferenceService = OpenInference::WithRawCallbackMethod_ServerLive<
    OpenInference::WithRawCallbackMethod_ServerReady<
        OpenInference::WithRawCallbackMethod_ModelReady<
            OpenInference::WithRawCallbackMethod_ServerMetadata<
                OpenInference::WithRawCallbackMethod_ModelMetadata<OpenInference::Service>>>>>;

}  // namespace internal

class InferenceService final : public internal::RawInferenceService {
 public:
  using Bytes = grpc::ByteBuffer;

  // What is ready is what `health` says. Both outlive this.
  InferenceService(const ServiceEnvironment& environment, const HealthService& health,
                   const InferenceOptions& options);

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context, const Bytes* request,
                                       Bytes* response) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* context, const Bytes* request,
                                        Bytes* response) override;
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* context, const Bytes* request,
                                       Bytes* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* context,
                                           const Bytes* request, Bytes* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const Bytes* request, Bytes* response) override;

  // Charged for the messages of each ModelInfer.
  const engine::ByteBudget& message_budget() const { return messages_; }

 private:
  // Hands ModelInfer to a reactor of its own, before its message has been received.
  void TakeModelInfer();

  const ServiceEnvironment environment_;
  const HealthService& health_;
  const InferenceOptions options_;
  engine::ByteBudget messages_;
};

}  // namespace cipherd::server
