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
#include "server/told_early.h"

namespace cipherd::server {
class InferenceService final
    : public ToldEarly<inference::GRPCInferenceService, inference::GRPCInferenceService::Service> {
 public:
  // What is ready is what `health` says. Both outlive this.
  InferenceService(const ServiceEnvironment& environment, const HealthService& health,
                   const InferenceOptions& options);

  // Charged for the messages of each ModelInfer.
  const engine::ByteBudget& message_budget() const { return messages_; }

 private:
  Reactor* ServerLive(grpc::CallbackServerContext* context);
  Reactor* ServerReady(grpc::CallbackServerContext* context);
  Reactor* ModelReady(grpc::CallbackServerContext* context);
  Reactor* ServerMetadata(grpc::CallbackServerContext* context);
  Reactor* ModelMetadata(grpc::CallbackServerContext* context);

  const ServiceEnvironment environment_;
  const HealthService& health_;
  const InferenceOptions options_;
  engine::ByteBudget messages_;
};

}  // namespace cipherd::server
