#include "server/evaluate_reactor.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/error_detail.h"
#include "server/wire_message.h"

namespace cipherd::server {

EvaluateReactor::EvaluateReactor(const ServiceEnvironment& environment,
                                 grpc::CallbackServerContext& context,
                                 const grpc::ByteBuffer& request, grpc::ByteBuffer& response)
    : environment_(environment),
      context_(context),
      response_(response),
      rpc_("Evaluate", context, environment.metrics, environment.engine.clock()),
      pass_(environment.calls),
      evaluation_(environment, rpc_),
      stall_(environment.stalls, [&context] { context.TryCancel(); }) {
  if (const absl::Status status = Receive(request); !status.ok()) {
    Reply(status);
    return;
  }
  evaluation_.Submit([this](const absl::Status& status) { Reply(status); });
}

absl::Status EvaluateReactor::Receive(const grpc::ByteBuffer& bytes) {
  if (!pass_.is_open()) return TooManyCalls(environment_.calls);
  CIPHERD_ASSIGN_OR_RETURN(const Caller caller, environment_.callers.Identify(context_));
  v1::EvaluateRequest request;
  // A view of gRPC's own, which stays.
  grpc::ByteBuffer view = bytes;
  CIPHERD_RETURN_IF_ERROR(ParseMessage(view, request));
  const uint64_t payload_bytes = request.payload().size();
  CIPHERD_RETURN_IF_ERROR(evaluation_.Begin(request.header(), caller, payload_bytes));
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

absl::Status EvaluateReactor::Encode() {
  v1::EvaluateResponse response;
  CIPHERD_RETURN_IF_ERROR(
      evaluation_.EncodeResult(response.mutable_outputs(), response.mutable_stage_times()));
  codec::PayloadSource& result = evaluation_.result();
  result.TakeInto(result.total_bytes(), response.mutable_payload());
  return SerializeMessage(response, response_);
}

void EvaluateReactor::Reply(absl::Status status) {
  if (status.ok()) status = Encode();
  evaluation_.End(status);
  stall_.AwaitPeer();
  Finish(rpc_.Close(status));
}

}  // namespace cipherd::server
