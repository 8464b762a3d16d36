#include "client/key_upload.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/call_status.h"
#include "client/client.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/tree_encoder.h"

namespace cipherd::client {
namespace {

// Between questions to a daemon that does not answer.
constexpr absl::Duration kFirstRetryDelay = absl::Milliseconds(50);
constexpr absl::Duration kLongestRetryDelay = absl::Seconds(2);

std::string RandomUploadId() {
  std::random_device random;
  std::string id;
  for (int word = 0; word < 4; ++word) {
    const uint32_t bits = random();
    for (int i = 0; i < 4; ++i) id.push_back(static_cast<char>(bits >> (8 * i)));
  }
  return id;
}

// Whether the upload may go on afterwards: the connection or the daemon went away, the daemon lost
// patience, or it asks for another try. One that says that it is shutting down does not.
bool IsBreak(const absl::Status& status) {
  const v1::ErrorReason reason = ReasonOf(status);
  if (reason == v1::ERROR_REASON_STALLED) return true;
  return absl::IsUnavailable(status) &&
         (reason == v1::ERROR_REASON_UNSPECIFIED || RetryDelayOf(status).has_value());
}

}  // namespace

KeyUpload::KeyUpload(v1::EvaluationService::Stub& stub, ContextFactory make_context,
                     const codec::WireLimits& limits, const Description& description,
                     std::shared_ptr<Cancellation> cancellation)
    : stub_(stub),
      make_context_(std::move(make_context)),
      limits_(limits),
      description_(description),
      cancellation_(std::move(cancellation)),
      upload_id_(description.upload_id.empty() ? RandomUploadId() : description.upload_id),
      routed_by_(description.key_set_id.empty() ? absl::BytesToHexString(upload_id_)
                                                : description.key_set_id),
      id_(description.context->id_bytes()) {}

KeyUpload::~KeyUpload() {
  if (writer_ == nullptr) return;
  writer_->WritesDone();
  FinishCall().IgnoreError();
  if (position_.bytes == 0) return;
  // The daemon keeps what has come, until the upload begins anew; and that one has nothing to keep.
  position_ = {};
  if (!Open().ok()) return;
  writer_->WritesDone();
  FinishCall().IgnoreError();
}

absl::StatusOr<std::unique_ptr<KeyUpload>> KeyUpload::Start(
    v1::EvaluationService::Stub& stub, ContextFactory make_context, const codec::WireLimits& limits,
    const Description& description, std::shared_ptr<Cancellation> cancellation) {
  if (description.total_bytes > limits.max_key_set_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("key set: expected at most ",
                                                     limits.max_key_set_bytes, " bytes, got ",
                                                     description.total_bytes));
  }
  std::unique_ptr<KeyUpload> upload(
      new KeyUpload(stub, std::move(make_context), limits, description, std::move(cancellation)));
  if (!description.upload_id.empty()) {
    const absl::Status known = upload->FindPosition();
    // A stream that was cut off may have it still.
    if (absl::IsUnavailable(known)) CIPHERD_RETURN_IF_ERROR(upload->Recover(known));
  }
  if (!upload->is_stored_) CIPHERD_RETURN_IF_ERROR(upload->Open());
  return upload;
}

absl::Status KeyUpload::Open() {
  cancel_context_.reset();
  context_ = make_context_(routed_by_);
  cancel_context_.emplace(cancellation_, [context = context_.get()] { context->TryCancel(); });
  writer_ = stub_.PutKeys(context_.get(), &response_);
  // A stream without bytes to go on from begins anew.
  if (position_.bytes == 0) position_ = {};
  v1::PutKeysRequest message;
  message.mutable_header()->set_context_id(description_.context->id_bytes());
  message.mutable_header()->set_key_count(description_.key_count);
  message.mutable_header()->set_total_bytes(description_.total_bytes);
  message.mutable_header()->set_upload_id(upload_id_);
  message.mutable_header()->set_resume_bytes(position_.bytes);
  return Write(message);
}

absl::Status KeyUpload::Add(const value::ExactValue& key) {
  if (is_finished_) return absl::FailedPreconditionError("key upload: finished already");
  CIPHERD_RETURN_IF_ERROR(failure_);
  const std::string path = absl::StrCat("keys[", key_count_, "]");
  CIPHERD_ASSIGN_OR_RETURN(const ckks::KeyId key_id, codec::KeyIdOf(key, path));
  CIPHERD_ASSIGN_OR_RETURN(const base::Sha256Digest digest, codec::PayloadDigest(key, path));
  v1::PutKeysRequest description;
  CIPHERD_ASSIGN_OR_RETURN(codec::PayloadSource payload,
                           codec::EncodeValue(key, path, description.mutable_key()));
  if (!id_.Add(key_id, digest)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", key_id.ToString(), " was added before"));
  }
  const uint64_t bytes = payload.total_bytes();
  pending_.push_back({std::move(description), std::move(payload), payload_bytes_, key_count_});
  payload_bytes_ += bytes;
  ++key_count_;
  failure_ = Pump();
  ForgetConfirmed();
  return failure_;
}

absl::StatusOr<std::string> KeyUpload::Finish() {
  if (is_finished_) return absl::FailedPreconditionError("key upload: finished already");
  CIPHERD_RETURN_IF_ERROR(failure_);
  while (true) {
    CIPHERD_RETURN_IF_ERROR(failure_ = Pump());
    if (is_stored_) break;
    writer_->WritesDone();
    const absl::Status status = FinishCall();
    if (status.ok()) break;
    if (!IsBreak(status)) return failure_ = status;
    CIPHERD_RETURN_IF_ERROR(failure_ = Recover(status));
  }
  is_finished_ = true;
  CIPHERD_ASSIGN_OR_RETURN(const std::string stated,
                           codec::DecodeDigest(response_.key_set_id(), "response.key_set_id"));
  const std::string expected = base::ToHex(id_.Finish());
  if (stated != expected) {
    return absl::InternalError(
        absl::StrCat("response.key_set_id: expected ", expected, ", got ", stated));
  }
  return stated;
}

absl::Status KeyUpload::Pump() {
  while (true) {
    const absl::Status status = Send();
    if (status.ok() || !IsBreak(status)) return status;
    CIPHERD_RETURN_IF_ERROR(Recover(status));
  }
}

absl::Status KeyUpload::Send() {
  if (is_stored_) return absl::OkStatus();
  if (writer_ == nullptr) CIPHERD_RETURN_IF_ERROR(Open());
  for (Pending& key : pending_) CIPHERD_RETURN_IF_ERROR(SendKey(key));
  return absl::OkStatus();
}

absl::Status KeyUpload::SendKey(Pending& key) {
  const uint64_t end = key.start + key.payload.total_bytes();
  if (position_.bytes >= end) return absl::OkStatus();
  if (position_.described_keys <= key.index) {
    CIPHERD_RETURN_IF_ERROR(Write(key.description));
    position_.described_keys = key.index + 1;
  }
  key.payload.Rewind();
  key.payload.Take(position_.bytes - key.start);
  v1::PutKeysRequest message;
  while (key.payload.remaining_bytes() > 0) {
    key.payload.TakeInto(limits_.max_chunk_bytes, message.mutable_chunk());
    CIPHERD_RETURN_IF_ERROR(Write(message));
    position_.bytes += message.chunk().size();
    if (description_.progress) description_.progress(position_.bytes, description_.total_bytes);
  }
  return absl::OkStatus();
}

absl::Status KeyUpload::Write(const v1::PutKeysRequest& message) {
  sent_bytes_ += message.ByteSizeLong();
  if (writer_->Write(message)) return absl::OkStatus();
  // The daemon has ended the call, and its status says why.
  const absl::Status status = FinishCall();
  return status.ok() ? absl::InternalError("the daemon ended the upload of keys early") : status;
}

absl::Status KeyUpload::Recover(const absl::Status& broken) {
  const absl::Time now = absl::Now();
  if (position_.bytes > furthest_bytes_ || broken_since_ == absl::InfinitePast()) {
    furthest_bytes_ = position_.bytes;
    broken_since_ = now;
  }
  absl::Duration delay = kFirstRetryDelay;
  while (absl::Now() - broken_since_ < description_.resume_timeout) {
    if (cancellation_ == nullptr) {
      absl::SleepFor(delay);
    } else if (cancellation_->WaitFor(delay)) {
      return CancelledByCaller();
    }
    delay = std::min(2 * delay, kLongestRetryDelay);
    const absl::Status status = FindPosition();
    if (absl::IsUnavailable(status)) continue;
    if (absl::IsCancelled(status)) return status;
    if (absl::IsNotFound(status)) position_ = {};
    if (!status.ok() && !absl::IsNotFound(status)) return broken;
    // What the daemon lacks must be here still.
    if (!is_stored_ && !pending_.empty() && position_.bytes < pending_.front().start) return broken;
    ++resume_count_;
    return absl::OkStatus();
  }
  return broken;
}

absl::Status KeyUpload::FindPosition() {
  v1::GetKeyUploadRequest request;
  request.set_upload_id(upload_id_);
  v1::GetKeyUploadResponse upload;
  const std::unique_ptr<grpc::ClientContext> context = make_context_(routed_by_);
  const Cancellation::Scope scope(cancellation_, [&] { context->TryCancel(); });
  CIPHERD_RETURN_IF_ERROR(
      StatusOfCall(stub_.GetKeyUpload(context.get(), request, &upload), cancellation_.get()));
  position_ = {upload.received_bytes(), upload.described_keys()};
  if (!upload.key_set_id().empty()) {
    is_stored_ = true;
    response_.set_key_set_id(upload.key_set_id());
  }
  return absl::OkStatus();
}

absl::Status KeyUpload::FinishCall() {
  const absl::Status status = StatusOfCall(writer_->Finish(), cancellation_.get());
  writer_.reset();
  return status;
}

void KeyUpload::ForgetConfirmed() {
  while (!pending_.empty()) {
    const Pending& key = pending_.front();
    if (payload_bytes_ - (key.start + key.payload.total_bytes()) < kUnconfirmedBytes) return;
    pending_.pop_front();
  }
}

}  // namespace cipherd::client
