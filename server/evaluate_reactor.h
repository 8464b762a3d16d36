// Evaluate: one evaluation in one message each way.
#pragma once

#include "cipherd/v1/evaluation.grpc.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/evaluation.h"
#include "server/rpc_scope.h"

namespace cipherd::server {

// Lives from the call's arrival until gRPC is done with it. Never blocks.
class EvaluateReactor final : public grpc::ServerUnaryReactor {
 public:
  EvaluateReactor(const ServiceEnvironment& environment, grpc::CallbackServerContext& context,
                  const v1::EvaluateRequest& request, v1::EvaluateResponse& response);

  void OnCancel() override { evaluation_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Receive(const v1::EvaluateRequest& request);
  // The evaluation has come to `status`; replies.
  void Reply(absl::Status status);

  const ServiceEnvironment& environment_;
  grpc::CallbackServerContext& context_;
  v1::EvaluateResponse& response_;
  RpcScope rpc_;
  Evaluation evaluation_;
};

}  // namespace cipherd::server
