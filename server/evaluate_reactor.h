// Evaluate: one evaluation in one message each way.
#pragma once

#include "cipherd/v1/evaluation.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/call_gate.h"
#include "server/evaluation.h"
#include "server/rpc_scope.h"
#include "server/stall_watch.h"

namespace cipherd::server {

// Lives from the call's arrival until gRPC is done with it. Never blocks.
class EvaluateReactor final : public grpc::ServerUnaryReactor {
 public:
  EvaluateReactor(const ServiceEnvironment& environment, grpc::CallbackServerContext& context,
                  const grpc::ByteBuffer& request, grpc::ByteBuffer& response);

  void OnCancel() override { evaluation_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Receive(const grpc::ByteBuffer& bytes);
  absl::Status Encode();
  // The evaluation has come to `status`; replies.
  void Reply(absl::Status status);

  const ServiceEnvironment& environment_;
  grpc::CallbackServerContext& context_;
  grpc::ByteBuffer& response_;
  RpcScope rpc_;
  const CallGate::Pass pass_;
  Evaluation evaluation_;

  // A reply that the client does not read ends the call. Last, so that it ends first.
  StallWatch::Call stall_;
};

}  // namespace cipherd::server
