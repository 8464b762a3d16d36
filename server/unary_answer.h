// Unary calls that are answered at once, on the thread that they arrive on.
//
//   return AnswerAtOnce<v1::GetProgramRequest, v1::GetProgramResponse>(
//       environment, context, "GetProgram", *request, *response,
//       [&](const Caller& caller, const auto& which, auto& program) -> absl::Status { … });
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/caller.h"
#include "server/evaluation.h"
#include "server/rpc_scope.h"
#include "server/wire_message.h"

namespace cipherd::server {

// `method` is a literal. work(const Caller&, const Request&, Response&) gives a status and does not
// block. Before the caller is known nothing of the request is read.
template <typename Request, typename Response, typename Work>
grpc::ServerUnaryReactor* AnswerAtOnce(const ServiceEnvironment& environment,
                                       grpc::CallbackServerContext* context,
                                       std::string_view method,
                                       const grpc::ByteBuffer& request_bytes,
                                       grpc::ByteBuffer& response_bytes, const Work& work) {
  RpcScope rpc(method, *context, environment.metrics, environment.engine.clock());
  const auto answer = [&]() -> absl::Status {
    CIPHERD_ASSIGN_OR_RETURN(const Caller caller, environment.callers.Identify(*context));
    Request request;
    // A view of gRPC's own, which stays.
    grpc::ByteBuffer view = request_bytes;
    CIPHERD_RETURN_IF_ERROR(ParseMessage(view, request));
    Response response;
    CIPHERD_RETURN_IF_ERROR(work(caller, request, response));
    return SerializeMessage(response, response_bytes);
  };
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc.Close(answer()));
  return reactor;
}

}  // namespace cipherd::server
