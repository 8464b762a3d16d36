#include "server/evaluate_stream_reactor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/error_detail.h"
#include "server/wire_message.h"

namespace cipherd::server {
namespace {

// What the worker's thread copies before it goes on; gRPC's threads write the rest in full chunks.
constexpr uint64_t kFirstChunkBytes = uint64_t{64} << 10;

}  // namespace

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
      wants_early_outputs_ = message.header().early_outputs();
      return evaluation_.Begin(message.header(), caller(), std::nullopt);
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

engine::Request::OutputListener EvaluateStreamReactor::OutputListener() {
  absl::MutexLock lock(&mu_);
  if (!wants_early_outputs_) return nullptr;
  return [this](size_t count) { OnEarlyOutputs(count); };
}

void EvaluateStreamReactor::OnEarlyOutputs(size_t count) {
  absl::MutexLock lock(&mu_);
  if (!failure_.ok()) return;
  if (const absl::Status status = Describe(); !status.ok()) {
    failure_ = status;
    return;
  }
  ready_bytes_ = evaluation_.OutputBytes(count);
  Advance(kFirstChunkBytes);
}

void EvaluateStreamReactor::Reply() {
  if (failure_.ok()) failure_ = Describe();
  if (!failure_.ok()) {
    Fail(failure_);
    return;
  }
  ready_bytes_ = evaluation_.result().total_bytes();
  if (!wants_early_outputs_) {
    evaluation_.EncodeTimes(next_.mutable_header()->mutable_stage_times());
    has_written_times_ = true;
  }
  Advance(kFirstChunkBytes);
}

void EvaluateStreamReactor::Fail(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
  has_failed_ = true;
  // A status would queue behind the message that is under way.
  if (!is_writing_) FinishWith(failure_);
}

absl::Status EvaluateStreamReactor::Describe() {
  if (evaluation_.has_result()) return absl::OkStatus();
  return evaluation_.EncodeOutputs(next_.mutable_header()->mutable_outputs());
}

void EvaluateStreamReactor::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mu_);
  Rest();
  is_writing_ = false;
  if (!ok && failure_.ok()) {
    failure_ = has_stalled_ ? Stalled(environment_.stalls, "a message of the result to be read")
                            : absl::CancelledError("the client left before its result was sent");
  }
  if (failure_.ok()) {
    Advance(environment_.limits.max_chunk_bytes);
  } else if (has_failed_ || state() == State::kReplying) {
    FinishWith(failure_);
  }
  // Else the evaluation goes on, to its end or its cancellation: Fail or Reply follows.
}

void EvaluateStreamReactor::Advance(uint64_t max_chunk_bytes) {
  if (is_writing_) return;
  if (PrepareNext(max_chunk_bytes)) {
    Write();
  } else if (state() == State::kReplying) {
    FinishWith(absl::OkStatus());
  }
}

bool EvaluateStreamReactor::PrepareNext(uint64_t max_chunk_bytes) {
  if (next_.part_case() != v1::EvaluateStreamResponse::PART_NOT_SET) return true;
  codec::PayloadSource& result = evaluation_.result();
  const uint64_t written_bytes = result.total_bytes() - result.remaining_bytes();
  if (written_bytes < ready_bytes_) {
    result.TakeInto(std::min(max_chunk_bytes, ready_bytes_ - written_bytes), next_.mutable_chunk());
    return true;
  }
  if (state() != State::kReplying || has_written_times_) return false;
  evaluation_.EncodeTimes(next_.mutable_stage_times());
  has_written_times_ = true;
  return true;
}

void EvaluateStreamReactor::Write() {
  const absl::Status status = SerializeMessage(next_, write_bytes_);
  next_.Clear();
  if (!status.ok()) {
    failure_ = status;
    if (state() == State::kReplying) FinishWith(status);
    return;
  }
  is_writing_ = true;
  AwaitPeer();
  if (has_written_times_ && evaluation_.result().remaining_bytes() == 0) {
    // Travels together with the status.
    StartWriteLast(&write_bytes_, grpc::WriteOptions());
  } else {
    StartWrite(&write_bytes_);
  }
}

void EvaluateStreamReactor::OnStall() {
  if (is_writing_) {
    has_stalled_ = true;
    // A status would queue behind the message that is not read. The write fails now.
    context_.TryCancel();
  } else if (state() == State::kReceiving) {
    FinishWith(Stalled(environment_.stalls, "the next message of the inputs"));
  }
}

}  // namespace cipherd::server
