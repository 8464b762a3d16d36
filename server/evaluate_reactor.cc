#include "server/evaluate_reactor.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/error_detail.h"

namespace cipherd::server {

EvaluateReactor::EvaluateReactor(const ServiceEnvironment& environment,
                                 grpc::CallbackServerContext& context,
                                 const v1::EvaluateRequest& request, v1::EvaluateResponse& response)
    : environment_(environment),
      context_(context),
      response_(response),
      rpc_("Evaluate", environment.metrics, environment.engine.clock()),
      evaluation_(environment, rpc_) {
  if (const absl::Status status = Receive(request); !status.ok()) {
    Reply(status);
    return;
  }
  evaluation_.Submit([this](const absl::Status& status) { Reply(status); });
}

absl::Status EvaluateReactor::Receive(const v1::EvaluateRequest& request) {
  const uint64_t payload_bytes = request.payload().size();
  CIPHERD_RETURN_IF_ERROR(evaluation_.Begin(request.header(), Caller::Of(context_), payload_bytes));
  const uint64_t output_bytes = evaluation_.output_bytes();
  const uint64_t limit = environment_.limits.max_unary_bytes;
  if (payload_bytes > limit || output_bytes > limit) {
    return codec::Refuse(
        v1::ERROR_REASON_LIMIT_EXCEEDED, "payload",
        absl::StrCat("inputs of ", payload_bytes, " and outputs of ", output_bytes,
                     " bytes: one message holds at most ", limit, "; use EvaluateStream"));
  }
  return evaluation_.Write(request.payload());
}

void EvaluateReactor::Reply(absl::Status status) {
  if (status.ok()) {
    status = evaluation_.EncodeResult(response_.mutable_outputs(), response_.mutable_stage_times());
  }
  if (status.ok()) {
    evaluation_.result().TakeInto(evaluation_.result().total_bytes(), response_.mutable_payload());
  }
  evaluation_.End(status);
  Finish(rpc_.Close(status));
}

}  // namespace cipherd::server
