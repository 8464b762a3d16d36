// PutKeys: receives one key set into pinned memory that was charged before, all or nothing.
#pragma once

#include <optional>

#include "cipherd/v1/evaluation.grpc.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "proto/codec/key_set_reader.h"
#include "server/caller.h"
#include "server/engine/key_store.h"
#include "server/evaluation.h"
#include "server/rpc_scope.h"

namespace cipherd::server {

// Lives from the call's arrival until gRPC is done with it. Never blocks. Dropped half way it
// leaves nothing.
class PutKeysReactor final : public grpc::ServerReadReactor<v1::PutKeysRequest> {
 public:
  PutKeysReactor(const ServiceEnvironment& environment, grpc::CallbackServerContext& context,
                 v1::PutKeysResponse& response);

  void OnReadDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  absl::Status Receive(const v1::PutKeysRequest& message);
  absl::Status BeginSet(const v1::KeySetHeader& header);
  absl::Status Commit();

  const ServiceEnvironment& environment_;
  grpc::CallbackServerContext& context_;
  v1::PutKeysResponse& response_;
  RpcScope rpc_;
  v1::PutKeysRequest request_;
  // Both from the header on.
  std::optional<codec::KeySetReader> reader_;
  std::optional<engine::KeyUpload> upload_;
};

}  // namespace cipherd::server
