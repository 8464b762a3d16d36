// cipherd.v1.EvaluationService over the engine. Each RPC decodes, delegates and encodes; no
// reaction blocks, and what all RPCs have in common is in rpc_scope.h.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cipherd/v1/evaluation.grpc.pb.h"
#include "server/evaluation.h"

namespace cipherd::server {

class EvaluationService final : public v1::EvaluationService::CallbackService {
 public:
  explicit EvaluationService(const ServiceEnvironment& environment) : environment_(environment) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const v1::GetServerInfoRequest* request,
                                          v1::ServerInfo* response) override;
  grpc::ServerUnaryReactor* ListPrograms(grpc::CallbackServerContext* context,
                                         const v1::ListProgramsRequest* request,
                                         v1::ListProgramsResponse* response) override;
  grpc::ServerUnaryReactor* GetProgram(grpc::CallbackServerContext* context,
                                       const v1::GetProgramRequest* request,
                                       v1::GetProgramResponse* response) override;
  grpc::ServerReadReactor<v1::PutKeysRequest>* PutKeys(grpc::CallbackServerContext* context,
                                                       v1::PutKeysResponse* response) override;
  grpc::ServerUnaryReactor* DropKeys(grpc::CallbackServerContext* context,
                                     const v1::DropKeysRequest* request,
                                     v1::DropKeysResponse* response) override;
  grpc::ServerUnaryReactor* Evaluate(grpc::CallbackServerContext* context,
                                     const v1::EvaluateRequest* request,
                                     v1::EvaluateResponse* response) override;
  grpc::ServerBidiReactor<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse>* EvaluateStream(
      grpc::CallbackServerContext* context) override;

 private:
  // A unary RPC that is answered at once.
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, std::string_view method,
                                   absl::FunctionRef<absl::Status()> work) const;

  bool IsReady(std::string_view program) const;

  const ServiceEnvironment environment_;
};

}  // namespace cipherd::server
