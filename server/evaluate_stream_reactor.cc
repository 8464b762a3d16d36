#include "server/evaluate_stream_reactor.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/error_detail.h"

namespace cipherd::server {

EvaluateStreamReactor::EvaluateStreamReactor(const ServiceEnvironment& environment,
                                             grpc::CallbackServerContext& context)
    : environment_(environment),
      context_(context),
      rpc_("EvaluateStream", environment.metrics, environment.engine.clock()),
      evaluation_(environment, rpc_) {
  StartRead(&request_);
}

void EvaluateStreamReactor::OnReadDone(bool ok) {
  if (!ok) {
    OnHalfClose();
    return;
  }
  const absl::Status status = Receive(request_);
  // What a header brought along, unknown fields included, must not last as long as the stream.
  request_.Clear();
  if (!status.ok()) {
    FinishWith(status);
    return;
  }
  StartRead(&request_);
}

absl::Status EvaluateStreamReactor::Receive(const v1::EvaluateStreamRequest& message) {
  switch (message.part_case()) {
    case v1::EvaluateStreamRequest::kHeader:
      if (evaluation_.has_begun()) {
        return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header", "expected a chunk, got a header");
      }
      return evaluation_.Begin(message.header(), Caller::Of(context_), std::nullopt);
    case v1::EvaluateStreamRequest::kChunk: {
      if (!evaluation_.has_begun()) {
        return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "chunk", "expected a header, got a chunk");
      }
      const uint64_t limit = environment_.limits.max_chunk_bytes;
      if (message.chunk().empty()) {
        return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "chunk", "expected bytes, got none");
      }
      if (message.chunk().size() > limit) {
        return codec::Refuse(
            v1::ERROR_REASON_LIMIT_EXCEEDED, "chunk",
            absl::StrCat("expected at most ", limit, " bytes, got ", message.chunk().size()));
      }
      return evaluation_.Write(message.chunk());
    }
    case v1::EvaluateStreamRequest::PART_NOT_SET:
      break;
  }
  return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "part", "expected a header or a chunk");
}

void EvaluateStreamReactor::OnHalfClose() {
  if (context_.IsCancelled()) {
    FinishWith(absl::CancelledError("the client left before its inputs were complete"));
    return;
  }
  if (!evaluation_.has_begun()) {
    FinishWith(codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header", "the stream ended without one"));
    return;
  }
  evaluation_.Submit([this](const absl::Status& status) { OnResult(status); });
}

void EvaluateStreamReactor::OnResult(absl::Status status) {
  if (status.ok()) {
    v1::EvaluateStreamResponse::ResultHeader* header = response_.mutable_header();
    status = evaluation_.EncodeResult(header->mutable_outputs(), header->mutable_stage_times());
  }
  if (!status.ok()) {
    FinishWith(status);
    return;
  }
  StartWrite(&response_);
}

void EvaluateStreamReactor::OnWriteDone(bool ok) {
  if (!ok) {
    FinishWith(absl::CancelledError("the client left before its result was sent"));
  } else if (evaluation_.result().remaining_bytes() > 0) {
    WriteChunk();
  } else {
    FinishWith(absl::OkStatus());
  }
}

void EvaluateStreamReactor::WriteChunk() {
  codec::PayloadSource& result = evaluation_.result();
  result.TakeInto(environment_.limits.max_chunk_bytes, response_.mutable_chunk());
  if (result.remaining_bytes() > 0) {
    StartWrite(&response_);
  } else {
    // Travels together with the status.
    StartWriteLast(&response_, grpc::WriteOptions());
  }
}

void EvaluateStreamReactor::FinishWith(const absl::Status& status) {
  evaluation_.End(status);
  Finish(rpc_.Close(status));
}

}  // namespace cipherd::server
