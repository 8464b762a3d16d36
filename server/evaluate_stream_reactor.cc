#include "server/evaluate_stream_reactor.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/error_detail.h"
#include "server/wire_message.h"

namespace cipherd::server {

EvaluateStreamReactor::EvaluateStreamReactor(const ServiceEnvironment& environment,
                                             grpc::CallbackServerContext& context)
    : EvaluationReactor("EvaluateStream", environment, context) {
  Start();
}

absl::Status EvaluateStreamReactor::Receive(grpc::ByteBuffer& bytes) {
  v1::EvaluateStreamRequest message;
  CIPHERD_RETURN_IF_ERROR(ParseMessage(bytes, message));
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

absl::Status EvaluateStreamReactor::NothingCame() const {
  return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header", "the stream ended without one");
}

void EvaluateStreamReactor::Reply() {
  v1::EvaluateStreamResponse response;
  v1::EvaluateStreamResponse::ResultHeader* header = response.mutable_header();
  const absl::Status status =
      evaluation_.EncodeResult(header->mutable_outputs(), header->mutable_stage_times());
  if (status.ok()) {
    Write(response);
  } else {
    FinishWith(status);
  }
}

void EvaluateStreamReactor::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  Rest();
  if (!ok) {
    FinishWith(has_stalled_ ? Stalled(environment_.stalls, "a message of the result to be read")
                            : absl::CancelledError("the client left before its result was sent"));
    return;
  }
  codec::PayloadSource& result = evaluation_.result();
  if (result.remaining_bytes() == 0) {
    FinishWith(absl::OkStatus());
    return;
  }
  v1::EvaluateStreamResponse response;
  result.TakeInto(environment_.limits.max_chunk_bytes, response.mutable_chunk());
  Write(response);
}

void EvaluateStreamReactor::Write(const v1::EvaluateStreamResponse& message) {
  if (const absl::Status status = SerializeMessage(message, write_bytes_); !status.ok()) {
    FinishWith(status);
    return;
  }
  AwaitPeer();
  if (evaluation_.result().remaining_bytes() > 0) {
    StartWrite(&write_bytes_);
  } else {
    // Travels together with the status.
    StartWriteLast(&write_bytes_, grpc::WriteOptions());
  }
}

void EvaluateStreamReactor::OnStall() {
  switch (state()) {
    case State::kReceiving:
      FinishWith(Stalled(environment_.stalls, "the next message of the inputs"));
      break;
    case State::kRunning:
      break;
    case State::kReplying:
      has_stalled_ = true;
      // A status would queue behind the message that is not read. The write fails now.
      context_.TryCancel();
      break;
  }
}

}  // namespace cipherd::server
