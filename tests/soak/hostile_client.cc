#include "tests/soak/hostile_client.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/channel.h"
#include "core/base/status_macros.h"
#include "core/secret/random.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/tree_encoder.h"

namespace cipherd::testing {
namespace {

using client::EvaluationRequest;
using client::Session;

absl::StatusOr<value::ValueTree> EncryptZeros(const Session& session) {
  client::NamedVectors inputs;
  for (const programs::ProgramInput& input : session.program().inputs) {
    inputs[input.name] = {std::vector<double>(input.layout.element_count)};
  }
  CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
  return session.cipher().EncryptInputs(inputs, random);
}

absl::Status Expect(absl::StatusCode expected, const absl::Status& actual, const char* what) {
  // Where there is no room, a request is refused before all of it has been looked at.
  if (actual.code() == expected || absl::IsResourceExhausted(actual)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": expected ", absl::StatusCodeToString(expected),
                                          ", got ", std::string(actual.ToString())));
}

absl::Status ToStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostileClient>> HostileClient::Create(
    const client::ClientOptions& options, const std::string& program,
    const std::string& other_program) {
  std::unique_ptr<HostileClient> hostile(new HostileClient());
  CIPHERD_ASSIGN_OR_RETURN(hostile->client_, client::Client::Connect(options));
  CIPHERD_ASSIGN_OR_RETURN(hostile->session_, Session::Create(*hostile->client_, program));
  CIPHERD_RETURN_IF_ERROR(hostile->session_->UploadKeys());
  CIPHERD_ASSIGN_OR_RETURN(hostile->other_session_,
                           Session::Create(*hostile->client_, other_program));
  CIPHERD_ASSIGN_OR_RETURN(const auto channel, client::MakeChannel(options));
  hostile->stub_ = v1::EvaluationService::NewStub(channel);

  hostile->good_.program = hostile->session_->program_ptr();
  hostile->good_.key_set_id = hostile->session_->key_set_id();
  CIPHERD_ASSIGN_OR_RETURN(hostile->good_.inputs, EncryptZeros(*hostile->session_));
  v1::EvaluationHeader& header = *hostile->good_message_.mutable_header();
  header.set_program(program);
  CIPHERD_ASSIGN_OR_RETURN(*header.mutable_key_set_id(),
                           codec::EncodeDigest(hostile->good_.key_set_id, "key_set_id"));
  CIPHERD_ASSIGN_OR_RETURN(
      codec::PayloadSource payload,
      codec::EncodeTree(hostile->good_.inputs, "inputs", header.mutable_inputs()));
  payload.TakeInto(payload.total_bytes(), hostile->good_message_.mutable_payload());
  return hostile;
}

absl::Status HostileClient::Send(int kind) {
  static constexpr absl::Status (HostileClient::*kKinds[kKindCount])() = {
      &HostileClient::SendUnknownKeySet,         &HostileClient::SendUnknownProgram,
      &HostileClient::SendValueOfAnotherContext, &HostileClient::SendResidueAboveItsPrime,
      &HostileClient::SendShortPayload,          &HostileClient::SendStreamWithoutHeader,
      &HostileClient::LeaveInTheMiddleOfAStream, &HostileClient::LeaveInTheMiddleOfAnUpload};
  ++sent_count_;
  return (this->*kKinds[kind])();
}

absl::Status HostileClient::Evaluate(EvaluationRequest request, absl::StatusCode expected) {
  return Expect(expected, client_->Evaluate(request).status(), "a bad evaluation");
}

absl::Status HostileClient::SendUnknownKeySet() {
  EvaluationRequest request = good_;
  request.key_set_id = std::string(64, 'e');
  return Evaluate(std::move(request), absl::StatusCode::kNotFound);
}

absl::Status HostileClient::SendUnknownProgram() {
  EvaluationRequest request = good_;
  auto program = std::make_shared<client::ProgramDescription>(*request.program);
  program->name = absl::StrCat("made_up_", sent_count_);
  request.program = std::move(program);
  return Evaluate(std::move(request), absl::StatusCode::kNotFound);
}

absl::Status HostileClient::SendValueOfAnotherContext() {
  EvaluationRequest request = good_;
  CIPHERD_ASSIGN_OR_RETURN(request.inputs, EncryptZeros(*other_session_));
  return Evaluate(std::move(request), absl::StatusCode::kInvalidArgument);
}

absl::Status HostileClient::SendResidueAboveItsPrime() {
  v1::EvaluateRequest message = good_message_;
  std::memset(message.mutable_payload()->data() + 8, 0xff, 8);
  grpc::ClientContext context;
  v1::EvaluateResponse response;
  return Expect(absl::StatusCode::kInvalidArgument,
                ToStatus(stub_->Evaluate(&context, message, &response)), "a residue above");
}

absl::Status HostileClient::SendShortPayload() {
  v1::EvaluateRequest message = good_message_;
  message.mutable_payload()->pop_back();
  grpc::ClientContext context;
  v1::EvaluateResponse response;
  return Expect(absl::StatusCode::kInvalidArgument,
                ToStatus(stub_->Evaluate(&context, message, &response)), "a short payload");
}

absl::Status HostileClient::SendStreamWithoutHeader() {
  grpc::ClientContext context;
  const auto stream = stub_->EvaluateStream(&context);
  v1::EvaluateStreamRequest message;
  message.set_chunk("no header came before");
  stream->Write(message);
  stream->WritesDone();
  v1::EvaluateStreamResponse response;
  while (stream->Read(&response)) {
  }
  return Expect(absl::StatusCode::kInvalidArgument, ToStatus(stream->Finish()),
                "a stream without header");
}

absl::Status HostileClient::LeaveInTheMiddleOfAStream() {
  grpc::ClientContext context;
  const auto stream = stub_->EvaluateStream(&context);
  v1::EvaluateStreamRequest message;
  *message.mutable_header() = good_message_.header();
  stream->Write(message);
  message.set_chunk(good_message_.payload().substr(0, 1000));
  stream->Write(message);
  WaitAMoment();
  context.TryCancel();
  return Expect(absl::StatusCode::kCancelled, ToStatus(stream->Finish()), "a stream that is left");
}

absl::Status HostileClient::LeaveInTheMiddleOfAnUpload() {
  const client::ProgramDescription& program = session_->program();
  const absl::StatusOr<std::unique_ptr<client::KeyUpload>> upload =
      client_->StartKeyUpload({.context = program.known_context,
                               .key_count = program.required_keys.size(),
                               .total_bytes = program.key_bytes});
  if (upload.ok()) WaitAMoment();
  // Dropped before its first key: cancelled.
  return upload.status();
}

void HostileClient::WaitAMoment() { absl::SleepFor(absl::Microseconds(sent_count_ * 997 % 3000)); }

}  // namespace cipherd::testing
