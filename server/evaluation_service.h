// cipherd.v1.EvaluationService over the engine. Each RPC decodes, delegates and encodes; no
// reaction blocks, and what all RPCs have in common is in rpc_scope.h. gRPC hands over bytes, for
// the reason that wire_message.h gives, and calls before their message, for that of told_early.h.
#pragma once

#include "cipherd/v1/evaluation.grpc.pb.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/evaluation.h"
#include "server/told_early.h"

namespace cipherd::server {
namespace internal {

using RawEvaluationService =
    ToldEarly<v1::EvaluationService,
              v1::EvaluationService::WithRawCallbackMethod_PutKeys<
                  v1::EvaluationService::WithRawCallbackMethod_EvaluateStream<
                      v1::EvaluationService::Service>>>;

}  // namespace internal

class EvaluationService final : public internal::RawEvaluationService {
 public:
  explicit EvaluationService(const ServiceEnvironment& environment);

  grpc::ServerReadReactor<Bytes>* PutKeys(grpc::CallbackServerContext* context,
                                          Bytes* response) override;
  Reactor* EvaluateStream(grpc::CallbackServerContext* context) override;

 private:
  Reactor* GetServerInfo(grpc::CallbackServerContext* context);
  Reactor* ListPrograms(grpc::CallbackServerContext* context);
  Reactor* GetProgram(grpc::CallbackServerContext* context);
  Reactor* GetKeyUpload(grpc::CallbackServerContext* context);
  Reactor* DropKeys(grpc::CallbackServerContext* context);

  const ServiceEnvironment environment_;
};

}  // namespace cipherd::server
