#include "server/evaluation_service.h"

#include <memory>
#include <string>

#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/wire_limits.h"
#include "server/caller.h"
#include "server/evaluate_reactor.h"
#include "server/evaluate_stream_reactor.h"
#include "server/program_version.h"
#include "server/put_keys_reactor.h"
#include "server/rpc_scope.h"
#include "server/unary_answer.h"
#include "server/version.h"
#include "server/wire_message.h"

namespace cipherd::server {

grpc::ServerUnaryReactor* EvaluationService::GetServerInfo(grpc::CallbackServerContext* context,
                                                           const Bytes* request, Bytes* response) {
  return AnswerAtOnce<v1::GetServerInfoRequest, v1::ServerInfo>(
      environment_, context, "GetServerInfo", *request, *response,
      [this](const auto&, const auto&, v1::ServerInfo& info) {
        const runtime::Device& device = environment_.engine.device();
        info.set_version(kVersion);
        info.set_device(device.id().ToString());
        info.set_device_name(device.properties().name);
        codec::EncodeLimits(environment_.limits, info.mutable_limits());
        info.set_insecure_contexts_allowed(environment_.insecure_contexts_allowed);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* EvaluationService::ListPrograms(grpc::CallbackServerContext* context,
                                                          const Bytes* request, Bytes* response) {
  return AnswerAtOnce<v1::ListProgramsRequest, v1::ListProgramsResponse>(
      environment_, context, "ListPrograms", *request, *response,
      [this](const auto&, const auto&, v1::ListProgramsResponse& list) {
        for (const RegisteredProgramPtr& program : environment_.programs.programs()) {
          v1::ProgramSummary* summary = list.add_programs();
          *summary = program->description.summary();
          summary->set_ready(environment_.engine.IsReady(*program->program));
        }
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* EvaluationService::GetProgram(grpc::CallbackServerContext* context,
                                                        const Bytes* request, Bytes* response) {
  return AnswerAtOnce<v1::GetProgramRequest, v1::GetProgramResponse>(
      environment_, context, "GetProgram", *request, *response,
      [this](const auto&, const v1::GetProgramRequest& which,
             v1::GetProgramResponse& answer) -> absl::Status {
        CIPHERD_ASSIGN_OR_RETURN(const RegisteredProgramPtr program,
                                 FindProgramVersion(environment_.programs, environment_.engine,
                                                    which.name(), which.version()));
        answer = program->description;
        answer.mutable_summary()->set_ready(environment_.engine.IsReady(*program->program));
        return absl::OkStatus();
      });
}

grpc::ServerReadReactor<grpc::ByteBuffer>* EvaluationService::PutKeys(
    grpc::CallbackServerContext* context, Bytes* response) {
  return new PutKeysReactor(environment_, *context, *response);
}

grpc::ServerUnaryReactor* EvaluationService::GetKeyUpload(grpc::CallbackServerContext* context,
                                                          const Bytes* request, Bytes* response) {
  return AnswerAtOnce<v1::GetKeyUploadRequest, v1::GetKeyUploadResponse>(
      environment_, context, "GetKeyUpload", *request, *response,
      [&](const Caller& caller, const v1::GetKeyUploadRequest& which,
          v1::GetKeyUploadResponse& upload) -> absl::Status {
        CIPHERD_ASSIGN_OR_RETURN(const UploadTable::Progress progress,
                                 environment_.uploads.Find({caller.tenant, which.upload_id()}));
        upload.set_received_bytes(progress.received_bytes);
        upload.set_described_keys(progress.described_keys);
        if (progress.key_set_id.empty()) return absl::OkStatus();
        CIPHERD_ASSIGN_OR_RETURN(*upload.mutable_key_set_id(),
                                 codec::EncodeDigest(progress.key_set_id, "key_set_id"));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* EvaluationService::DropKeys(grpc::CallbackServerContext* context,
                                                      const Bytes* request, Bytes* response) {
  const auto rpc = std::make_shared<RpcScope>("DropKeys", *context, environment_.metrics,
                                              environment_.engine.clock());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::StatusOr<Caller> caller = environment_.callers.Identify(*context);
  v1::DropKeysRequest which;
  Bytes view = *request;
  absl::Status status = caller.ok() ? ParseMessage(view, which) : caller.status();
  if (status.ok()) {
    const absl::StatusOr<std::string> id = codec::DecodeDigest(which.key_set_id(), "key_set_id");
    if (id.ok()) {
      // On whatever thread has removed the file, maybe before it returns.
      environment_.engine.keys().Drop(
          caller->tenant, *id, [rpc, reactor, response](absl::Status dropped) {
            if (dropped.ok()) dropped = SerializeMessage(v1::DropKeysResponse(), *response);
            reactor->Finish(rpc->Close(dropped));
          });
      return reactor;
    }
    status = id.status();
  }
  reactor->Finish(rpc->Close(status));
  return reactor;
}

grpc::ServerUnaryReactor* EvaluationService::Evaluate(grpc::CallbackServerContext* context,
                                                      const Bytes* request, Bytes* response) {
  return new EvaluateReactor(environment_, *context, *request, *response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* EvaluationService::EvaluateStream(
    grpc::CallbackServerContext* context) {
  return new EvaluateStreamReactor(environment_, *context);
}

}  // namespace cipherd::server
