#include "server/evaluation_service.h"

#include <string>

#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/wire_limits.h"
#include "server/caller.h"
#include "server/evaluate_reactor.h"
#include "server/evaluate_stream_reactor.h"
#include "server/put_keys_reactor.h"
#include "server/rpc_scope.h"
#include "server/version.h"

namespace cipherd::server {

grpc::ServerUnaryReactor* EvaluationService::Answer(grpc::CallbackServerContext* context,
                                                    std::string_view method,
                                                    absl::FunctionRef<absl::Status()> work) const {
  RpcScope rpc(method, environment_.metrics, environment_.engine.clock());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc.Close(work()));
  return reactor;
}

grpc::ServerUnaryReactor* EvaluationService::GetServerInfo(grpc::CallbackServerContext* context,
                                                           const v1::GetServerInfoRequest* request,
                                                           v1::ServerInfo* response) {
  return Answer(context, "GetServerInfo", [&] {
    const runtime::Device& device = environment_.engine.device();
    response->set_version(kVersion);
    response->set_device(device.id().ToString());
    response->set_device_name(device.properties().name);
    codec::EncodeLimits(environment_.limits, response->mutable_limits());
    response->set_insecure_contexts_allowed(environment_.insecure_contexts_allowed);
    return absl::OkStatus();
  });
}

bool EvaluationService::IsReady(std::string_view program) const {
  const auto served = environment_.engine.FindProgram(program);
  return served.ok() && (*served)->is_ready();
}

grpc::ServerUnaryReactor* EvaluationService::ListPrograms(grpc::CallbackServerContext* context,
                                                          const v1::ListProgramsRequest* request,
                                                          v1::ListProgramsResponse* response) {
  return Answer(context, "ListPrograms", [&] {
    for (const RegisteredProgramPtr& program : environment_.programs.programs()) {
      v1::ProgramSummary* summary = response->add_programs();
      *summary = program->description.summary();
      summary->set_ready(IsReady(summary->name()));
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* EvaluationService::GetProgram(grpc::CallbackServerContext* context,
                                                        const v1::GetProgramRequest* request,
                                                        v1::GetProgramResponse* response) {
  return Answer(context, "GetProgram", [&]() -> absl::Status {
    const RegisteredProgramPtr program = environment_.programs.Find(request->name());
    if (program == nullptr) return environment_.engine.FindProgram(request->name()).status();
    *response = program->description;
    response->mutable_summary()->set_ready(IsReady(request->name()));
    return absl::OkStatus();
  });
}

grpc::ServerReadReactor<v1::PutKeysRequest>* EvaluationService::PutKeys(
    grpc::CallbackServerContext* context, v1::PutKeysResponse* response) {
  return new PutKeysReactor(environment_, *context, *response);
}

grpc::ServerUnaryReactor* EvaluationService::DropKeys(grpc::CallbackServerContext* context,
                                                      const v1::DropKeysRequest* request,
                                                      v1::DropKeysResponse* response) {
  return Answer(context, "DropKeys", [&]() -> absl::Status {
    CIPHERD_ASSIGN_OR_RETURN(const std::string id,
                             codec::DecodeDigest(request->key_set_id(), "key_set_id"));
    return environment_.engine.keys().Drop(Caller::Of(*context).tenant, id);
  });
}

grpc::ServerUnaryReactor* EvaluationService::Evaluate(grpc::CallbackServerContext* context,
                                                      const v1::EvaluateRequest* request,
                                                      v1::EvaluateResponse* response) {
  return new EvaluateReactor(environment_, *context, *request, *response);
}

grpc::ServerBidiReactor<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse>*
EvaluationService::EvaluateStream(grpc::CallbackServerContext* context) {
  return new EvaluateStreamReactor(environment_, *context);
}

}  // namespace cipherd::server
