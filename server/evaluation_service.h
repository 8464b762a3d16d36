// cipherd.v1.EvaluationService over the engine. Each RPC decodes, delegates and encodes; no
// reaction blocks, and what all RPCs have in common is in rpc_scope.h. gRPC hands over bytes, for
// the reason that wire_message.h gives.
#pragma once

#include "cipherd/v1/evaluation.grpc.pb.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/evaluation.h"

namespace cipherd::server {
namespace internal {

// Every method takes and gives bytes.
using Generated = v1::EvaluationService;
using RawEvaluationService = Generated::WithRawCallbackMethod_GetServerInfo<
    Generated::WithRawCallbackMethod_ListPrograms<Generated::WithRawCallbackMethod_GetProgram<
        Generated::WithRawCallbackMethod_PutKeys<Generated::WithRawCallbackMethod_GetKeyUpload<
            Generated::WithRawCallbackMethod_DropKeys<Generated::WithRawCallbackMethod_Evaluate<
                Generated::WithRawCallbackMethod_EvaluateStream<Generated::Service>>>>>>>>;

}  // namespace internal

class EvaluationService final : public internal::RawEvaluationService {
 public:
  using Bytes = grpc::ByteBuffer;

  explicit EvaluationService(const ServiceEnvironment& environment) : environment_(environment) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const Bytes* request, Bytes* response) override;
  grpc::ServerUnaryReactor* ListPrograms(grpc::CallbackServerContext* context, const Bytes* request,
                                         Bytes* response) override;
  grpc::ServerUnaryReactor* GetProgram(grpc::CallbackServerContext* context, const Bytes* request,
                                       Bytes* response) override;
  grpc::ServerReadReactor<Bytes>* PutKeys(grpc::CallbackServerContext* context,
                                          Bytes* response) override;
  grpc::ServerUnaryReactor* GetKeyUpload(grpc::CallbackServerContext* context, const Bytes* request,
                                         Bytes* response) override;
  grpc::ServerUnaryReactor* DropKeys(grpc::CallbackServerContext* context, const Bytes* request,
                                     Bytes* response) override;
  grpc::ServerUnaryReactor* Evaluate(grpc::CallbackServerContext* context, const Bytes* request,
                                     Bytes* response) override;
  grpc::ServerBidiReactor<Bytes, Bytes>* EvaluateStream(
      grpc::CallbackServerContext* context) override;

 private:
  const ServiceEnvironment environment_;
};

}  // namespace cipherd::server
