#include "client/key_upload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/call_status.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/tree_encoder.h"

namespace cipherd::client {

KeyUpload::KeyUpload(std::unique_ptr<grpc::ClientContext> context, const codec::WireLimits& limits,
                     const Description& description)
    : context_(std::move(context)),
      limits_(limits),
      description_(description),
      id_(description.context->id_bytes()) {}

KeyUpload::~KeyUpload() {
  if (is_finished_) return;
  context_->TryCancel();
  FinishCall().IgnoreError();
}

absl::StatusOr<std::unique_ptr<KeyUpload>> KeyUpload::Start(
    v1::EvaluationService::Stub& stub, std::unique_ptr<grpc::ClientContext> context,
    const codec::WireLimits& limits, const Description& description) {
  if (description.total_bytes > limits.max_key_set_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("key set: expected at most ",
                                                     limits.max_key_set_bytes, " bytes, got ",
                                                     description.total_bytes));
  }
  std::unique_ptr<KeyUpload> upload(new KeyUpload(std::move(context), limits, description));
  upload->writer_ = stub.PutKeys(upload->context_.get(), &upload->response_);

  v1::PutKeysRequest message;
  message.mutable_header()->set_context_id(description.context->id_bytes());
  message.mutable_header()->set_key_count(description.key_count);
  message.mutable_header()->set_total_bytes(description.total_bytes);
  CIPHERD_RETURN_IF_ERROR(upload->Write(message));
  return upload;
}

absl::Status KeyUpload::Add(const value::ExactValue& key) {
  const std::string path = absl::StrCat("keys[", key_count_, "]");
  CIPHERD_ASSIGN_OR_RETURN(const ckks::KeyId key_id, codec::KeyIdOf(key, path));
  CIPHERD_ASSIGN_OR_RETURN(const base::Sha256Digest digest, codec::PayloadDigest(key, path));
  if (!id_.Add(key_id, digest)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", key_id.ToString(), " was added before"));
  }

  v1::PutKeysRequest description;
  CIPHERD_ASSIGN_OR_RETURN(codec::PayloadSource payload,
                           codec::EncodeValue(key, path, description.mutable_key()));
  CIPHERD_RETURN_IF_ERROR(Write(description));
  v1::PutKeysRequest message;
  while (payload.remaining_bytes() > 0) {
    payload.TakeInto(limits_.max_chunk_bytes, message.mutable_chunk());
    payload_bytes_ += message.chunk().size();
    CIPHERD_RETURN_IF_ERROR(Write(message));
    if (description_.progress) description_.progress(payload_bytes_, description_.total_bytes);
  }
  ++key_count_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> KeyUpload::Finish() {
  if (is_finished_) return absl::FailedPreconditionError("key upload: finished already");
  writer_->WritesDone();
  CIPHERD_RETURN_IF_ERROR(FinishCall());
  CIPHERD_ASSIGN_OR_RETURN(const std::string stated,
                           codec::DecodeDigest(response_.key_set_id(), "response.key_set_id"));
  const std::string expected = base::ToHex(id_.Finish());
  if (stated != expected) {
    return absl::InternalError(
        absl::StrCat("response.key_set_id: expected ", expected, ", got ", stated));
  }
  return stated;
}

absl::Status KeyUpload::Write(const v1::PutKeysRequest& message) {
  if (is_finished_) return absl::FailedPreconditionError("key upload: finished already");
  sent_bytes_ += message.ByteSizeLong();
  if (writer_->Write(message)) return absl::OkStatus();
  // The daemon has ended the call, and its status says why.
  const absl::Status status = FinishCall();
  return status.ok() ? absl::InternalError("the daemon ended the upload of keys early") : status;
}

absl::Status KeyUpload::FinishCall() {
  is_finished_ = true;
  return StatusOfCall(writer_->Finish());
}

}  // namespace cipherd::client
