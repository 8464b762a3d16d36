#include "server/inference_service.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status_macros.h"
#include "proto/inference/inference_codec.h"
#include "proto/inference/model_metadata.h"
#include "server/lookup_reactor.h"
#include "server/model_infer_reactor.h"
#include "server/program_version.h"
#include "server/version.h"

namespace cipherd::server {
namespace {

constexpr char kServerName[] = "cipherd";

}  // namespace

InferenceService::InferenceService(const ServiceEnvironment& environment,
                                   const HealthService& health, const InferenceOptions& options)
    : environment_(environment),
      health_(health),
      options_(options),
      messages_("messages of ModelInfer", options.message_memory_bytes) {
  using Context = grpc::CallbackServerContext;
  Tell("ServerLive", [this](Context* context) { return ServerLive(context); });
  Tell("ServerReady", [this](Context* context) { return ServerReady(context); });
  Tell("ModelReady", [this](Context* context) { return ModelReady(context); });
  Tell("ServerMetadata", [this](Context* context) { return ServerMetadata(context); });
  Tell("ModelMetadata", [this](Context* context) { return ModelMetadata(context); });
  Tell("ModelInfer", [this](Context* context) {
    return new ModelInferReactor(environment_, options_, messages_, *context);
  });
}

InferenceService::Reactor* InferenceService::ServerLive(grpc::CallbackServerContext* context) {
  return LookUpAtOnce<inference::ServerLiveRequest, inference::ServerLiveResponse>(
      environment_, *context, "ServerLive", [](const auto&, const auto&, auto& answer) {
        answer.set_live(true);
        return absl::OkStatus();
      });
}

InferenceService::Reactor* InferenceService::ServerReady(grpc::CallbackServerContext* context) {
  return LookUpAtOnce<inference::ServerReadyRequest, inference::ServerReadyResponse>(
      environment_, *context, "ServerReady", [this](const auto&, const auto&, auto& answer) {
        answer.set_ready(health_.IsServing(""));
        return absl::OkStatus();
      });
}

InferenceService::Reactor* InferenceService::ModelReady(grpc::CallbackServerContext* context) {
  return LookUpAtOnce<inference::ModelReadyRequest, inference::ModelReadyResponse>(
      environment_, *context, "ModelReady",
      [this](const auto&, const inference::ModelReadyRequest& which, auto& answer) -> absl::Status {
        CIPHERD_ASSIGN_OR_RETURN(const uint32_t version,
                                 oip::DecodeModelVersion(which.version(), "version"));
        const absl::StatusOr<RegisteredProgramPtr> program =
            FindProgramVersion(environment_.programs, environment_.engine, which.name(), version);
        // One on its way in or out is not ready.
        if (!program.ok() && !absl::IsUnavailable(program.status())) return program.status();
        answer.set_ready(program.ok() && health_.IsServing(which.name()) &&
                         environment_.engine.IsReady(*(*program)->program));
        return absl::OkStatus();
      });
}

InferenceService::Reactor* InferenceService::ServerMetadata(grpc::CallbackServerContext* context) {
  return LookUpAtOnce<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
      environment_, *context, "ServerMetadata", [](const auto&, const auto&, auto& answer) {
        answer.set_name(kServerName);
        answer.set_version(kVersion);
        return absl::OkStatus();
      });
}

InferenceService::Reactor* InferenceService::ModelMetadata(grpc::CallbackServerContext* context) {
  return LookUpAtOnce<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
      environment_, *context, "ModelMetadata",
      [this](const auto&, const inference::ModelMetadataRequest& which,
             auto& answer) -> absl::Status {
        CIPHERD_ASSIGN_OR_RETURN(const uint32_t version,
                                 oip::DecodeModelVersion(which.version(), "version"));
        CIPHERD_ASSIGN_OR_RETURN(
            const RegisteredProgramPtr program,
            FindProgramVersion(environment_.programs, environment_.engine, which.name(), version));
        std::vector<uint32_t> ready;
        for (const RegisteredProgramPtr& other : environment_.programs.Versions(which.name())) {
          if (environment_.engine.IsReady(*other->program)) {
            ready.push_back(static_cast<uint32_t>(other->info().version));
          }
        }
        std::reverse(ready.begin(), ready.end());
        return oip::EncodeModelMetadata(program->description, ready, &answer);
      });
}

}  // namespace cipherd::server
