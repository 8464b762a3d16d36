#include "server/evaluation_service.h"

#include <string>
#include <utility>

#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/wire_limits.h"
#include "server/caller.h"
#include "server/device_list.h"
#include "server/evaluate_reactor.h"
#include "server/evaluate_stream_reactor.h"
#include "server/lookup_reactor.h"
#include "server/program_version.h"
#include "server/put_keys_reactor.h"
#include "server/version.h"
#include "server/wire_message.h"

namespace cipherd::server {

EvaluationService::EvaluationService(const ServiceEnvironment& environment)
    : environment_(environment) {
  using Context = grpc::CallbackServerContext;
  Tell("GetServerInfo", [this](Context* context) { return GetServerInfo(context); });
  Tell("ListPrograms", [this](Context* context) { return ListPrograms(context); });
  Tell("GetProgram", [this](Context* context) { return GetProgram(context); });
  Tell("GetKeyUpload", [this](Context* context) { return GetKeyUpload(context); });
  Tell("DropKeys", [this](Context* context) { return DropKeys(context); });
  Tell("Evaluate",
       [this](Context* context) { return new EvaluateReactor(environment_, *context); });
}

EvaluationService::Reactor* EvaluationService::GetServerInfo(grpc::CallbackServerContext* context) {
  return LookUpAtOnce<v1::GetServerInfoRequest, v1::ServerInfo>(
      environment_, *context, "GetServerInfo",
      [this](const auto&, const auto&, v1::ServerInfo& info) {
        info.set_version(kVersion);
        info.set_device(DeviceIds(environment_.engine));
        info.set_device_name(DeviceNames(environment_.engine));
        codec::EncodeLimits(environment_.limits, info.mutable_limits());
        info.set_insecure_contexts_allowed(environment_.insecure_contexts_allowed);
        return absl::OkStatus();
      });
}

EvaluationService::Reactor* EvaluationService::ListPrograms(grpc::CallbackServerContext* context) {
  return LookUpAtOnce<v1::ListProgramsRequest, v1::ListProgramsResponse>(
      environment_, *context, "ListPrograms",
      [this](const auto&, const auto&, v1::ListProgramsResponse& list) {
        for (const RegisteredProgramPtr& program : environment_.programs.programs()) {
          v1::ProgramSummary* summary = list.add_programs();
          *summary = program->description.summary();
          summary->set_ready(environment_.engine.IsReady(*program->program));
        }
        return absl::OkStatus();
      });
}

EvaluationService::Reactor* EvaluationService::GetProgram(grpc::CallbackServerContext* context) {
  return LookUpAtOnce<v1::GetProgramRequest, v1::GetProgramResponse>(
      environment_, *context, "GetProgram",
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

EvaluationService::Reactor* EvaluationService::GetKeyUpload(grpc::CallbackServerContext* context) {
  return LookUpAtOnce<v1::GetKeyUploadRequest, v1::GetKeyUploadResponse>(
      environment_, *context, "GetKeyUpload",
      [this](const Caller& caller, const v1::GetKeyUploadRequest& which,
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

EvaluationService::Reactor* EvaluationService::DropKeys(grpc::CallbackServerContext* context) {
  return new LookupReactor(
      "DropKeys", environment_, *context,
      [this](const Caller& caller, grpc::ByteBuffer& message, const LookupReactor::Reply& reply) {
        v1::DropKeysRequest which;
        const auto decode = [&]() -> absl::StatusOr<std::string> {
          CIPHERD_RETURN_IF_ERROR(ParseMessage(message, which));
          return codec::DecodeDigest(which.key_set_id(), "key_set_id");
        };
        const absl::StatusOr<std::string> id = decode();
        if (!id.ok()) {
          reply(id.status(), Bytes());
          return;
        }
        // On whatever thread has removed the file, maybe before it returns.
        environment_.engine.keys().Drop(caller.tenant, *id, [reply](absl::Status dropped) {
          Bytes response;
          if (dropped.ok()) dropped = SerializeMessage(v1::DropKeysResponse(), response);
          reply(dropped, std::move(response));
        });
      });
}

EvaluationService::Reactor* EvaluationService::EvaluateStream(
    grpc::CallbackServerContext* context) {
  return new EvaluateStreamReactor(environment_, *context);
}

}  // namespace cipherd::server
