#include "server/evaluate_reactor.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/error_detail.h"
#include "server/wire_message.h"

namespace cipherd::server {

absl::Status EvaluateReactor::Receive(grpc::ByteBuffer& bytes) {
  if (evaluation_.has_begun()) {
    return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "message", "expected one, got another");
  }
  v1::EvaluateRequest request;
  CIPHERD_RETURN_IF_ERROR(ParseMessage(bytes, request));
  const uint64_t payload_bytes = request.payload().size();
  CIPHERD_RETURN_IF_ERROR(evaluation_.Begin(request.header(), caller(), payload_bytes));
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

absl::Status EvaluateReactor::NothingCame() const {
  return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "message", "expected one, got none");
}

absl::Status EvaluateReactor::EncodeResult() {
  v1::EvaluateResponse response;
  CIPHERD_RETURN_IF_ERROR(
      evaluation_.EncodeResult(response.mutable_outputs(), response.mutable_stage_times()));
  codec::PayloadSource& result = evaluation_.result();
  result.TakeInto(result.total_bytes(), response.mutable_payload());
  return SerializeMessage(response, response_);
}

void EvaluateReactor::Reply() {
  const absl::Status status = EncodeResult();
  if (status.ok()) {
    FinishWithLast(response_);
  } else {
    FinishWith(status);
  }
}

void EvaluateReactor::OnStall() {
  if (state() == State::kReceiving) {
    FinishWith(Stalled(environment_.stalls, "the request's message"));
  }
}

}  // namespace cipherd::server
