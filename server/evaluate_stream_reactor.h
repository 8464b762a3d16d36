// EvaluateStream: one evaluation of any size, header and chunks each way.
//
//   kHeader --header--> kPayload --chunk--> kPayload --half-close--> kRunning
//       |                   |                                           |
//       +--- any error -----+----> kFinished <---- last chunk ---- kReplying
//
// The client's half-close says that its payload is complete. At most one message each way is in
// memory besides the pinned trees.
#pragma once

#include "cipherd/v1/evaluation.grpc.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/evaluation.h"
#include "server/rpc_scope.h"

namespace cipherd::server {

// Lives from the call's arrival until gRPC is done with it. Never blocks. gRPC runs one reaction at
// a time, but for OnCancel.
class EvaluateStreamReactor final
    : public grpc::ServerBidiReactor<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse> {
 public:
  EvaluateStreamReactor(const ServiceEnvironment& environment,
                        grpc::CallbackServerContext& context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { evaluation_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  // The next message from the client.
  absl::Status Receive(const v1::EvaluateStreamRequest& message);
  // The client has sent all that it will, or has gone.
  void OnHalfClose();
  // The evaluation has come to `status`.
  void OnResult(absl::Status status);
  void WriteChunk();
  void FinishWith(const absl::Status& status);

  const ServiceEnvironment& environment_;
  grpc::CallbackServerContext& context_;
  RpcScope rpc_;
  Evaluation evaluation_;
  v1::EvaluateStreamRequest request_;
  v1::EvaluateStreamResponse response_;
};

}  // namespace cipherd::server
