// Client::Evaluate: a request out, a checked result in.
#include <random>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/call_status.h"
#include "client/client.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/tree_admission.h"
#include "proto/codec/tree_encoder.h"

namespace cipherd::client {
namespace {

constexpr absl::Duration kEvaluationTimeout = absl::Minutes(1);

std::string RandomRequestId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

// A fault of the daemon's, not of the caller: the code says so, the message stays.
absl::Status AsFaultOfDaemon(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InternalError(
      absl::StrCat("the daemon's result was refused: ", std::string(status.message())));
}

// Admits the announced outputs: exactly the values that the program returns, of its context.
absl::StatusOr<codec::PayloadReader> ReadOutputs(const ProgramDescription& program,
                                                 const codec::WireLimits& limits,
                                                 const v1::ValueTree& outputs,
                                                 std::optional<uint64_t> payload_bytes) {
  codec::TreeExpectation expectation;
  expectation.contexts = std::span(&program.known_context, 1);
  expectation.signature = &program.output_signature;
  expectation.max_payload_bytes = limits.max_request_bytes;
  expectation.actual_payload_bytes = payload_bytes;
  CIPHERD_ASSIGN_OR_RETURN(codec::AdmittedTree admitted,
                           codec::AdmitTree(outputs, expectation, limits, "outputs"));
  return codec::PayloadReader::Allocate(std::move(admitted), codec::PageableTensors());
}

}  // namespace

absl::StatusOr<EvaluationResult> Client::Evaluate(const EvaluationRequest& request,
                                                  const CallOptions& options) const {
  const ProgramDescription& program = *request.program;
  const std::string request_id =
      request.request_id.empty() ? RandomRequestId() : request.request_id;
  v1::EvaluationHeader header;
  header.set_program(program.name);
  CIPHERD_ASSIGN_OR_RETURN(*header.mutable_key_set_id(),
                           codec::EncodeDigest(request.key_set_id, "key_set_id"));
  header.set_request_id(request_id);
  CIPHERD_ASSIGN_OR_RETURN(codec::PayloadSource payload,
                           codec::EncodeTree(request.inputs, "inputs", header.mutable_inputs()));
  if (payload.total_bytes() > limits_.max_request_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("inputs: expected at most ",
                                                     limits_.max_request_bytes, " bytes, got ",
                                                     payload.total_bytes()));
  }

  const std::unique_ptr<grpc::ClientContext> context = MakeContext(options, kEvaluationTimeout);
  absl::StatusOr<EvaluationResult> result;
  if (payload.total_bytes() <= limits_.max_unary_bytes &&
      program.output_bytes <= limits_.max_unary_bytes) {
    v1::EvaluateRequest message;
    payload.TakeInto(payload.total_bytes(), message.mutable_payload());
    *message.mutable_header() = std::move(header);
    result = EvaluateUnary(program, std::move(message), *context);
  } else {
    result = EvaluateStream(program, std::move(header), std::move(payload), *context);
  }
  if (result.ok()) result->request_id = request_id;
  return result;
}

absl::StatusOr<EvaluationResult> Client::EvaluateUnary(const ProgramDescription& program,
                                                       v1::EvaluateRequest request,
                                                       grpc::ClientContext& context) const {
  EvaluationResult result;
  v1::EvaluateResponse response;
  CIPHERD_RETURN_IF_ERROR(StatusOfCall(stub_->Evaluate(&context, request, &response)));
  result.sent_bytes = request.ByteSizeLong();
  result.received_bytes = response.ByteSizeLong();
  result.stage_times = response.stage_times();

  absl::StatusOr<codec::PayloadReader> reader =
      ReadOutputs(program, limits_, response.outputs(), response.payload().size());
  if (!reader.ok()) return AsFaultOfDaemon(reader.status());
  if (absl::Status written = reader->Write(std::string_view(response.payload())); !written.ok()) {
    return AsFaultOfDaemon(written);
  }
  absl::StatusOr<value::ValueTree> outputs = std::move(*reader).Finish();
  if (!outputs.ok()) return AsFaultOfDaemon(outputs.status());
  result.outputs = *std::move(outputs);
  return result;
}

absl::StatusOr<EvaluationResult> Client::EvaluateStream(const ProgramDescription& program,
                                                        v1::EvaluationHeader header,
                                                        codec::PayloadSource payload,
                                                        grpc::ClientContext& context) const {
  EvaluationResult result;
  const auto stream = stub_->EvaluateStream(&context);
  v1::EvaluateStreamRequest message;
  *message.mutable_header() = std::move(header);
  bool is_open = stream->Write(message);
  result.sent_bytes = message.ByteSizeLong();
  while (is_open && payload.remaining_bytes() > 0) {
    payload.TakeInto(limits_.max_chunk_bytes, message.mutable_chunk());
    result.sent_bytes += message.ByteSizeLong();
    is_open = stream->Write(message);
  }
  // A failed write means that the daemon has ended the call: its status comes with Finish.
  if (is_open) stream->WritesDone();

  std::optional<codec::PayloadReader> reader;
  v1::EvaluateStreamResponse response;
  while (stream->Read(&response)) {
    result.received_bytes += response.ByteSizeLong();
    absl::Status status;
    if (response.has_header() && !reader.has_value()) {
      absl::StatusOr<codec::PayloadReader> opened =
          ReadOutputs(program, limits_, response.header().outputs(), std::nullopt);
      if (opened.ok()) {
        reader = *std::move(opened);
      } else {
        status = opened.status();
      }
      result.stage_times = response.header().stage_times();
    } else if (response.has_chunk() && reader.has_value()) {
      status = reader->Write(std::string_view(response.chunk()));
    } else {
      status = absl::InternalError("expected one header, then chunks");
    }
    if (!status.ok()) {
      context.TryCancel();
      stream->Finish();
      return AsFaultOfDaemon(status);
    }
  }
  CIPHERD_RETURN_IF_ERROR(StatusOfCall(stream->Finish()));
  if (!reader.has_value())
    return absl::InternalError("the daemon ended the evaluation without a result");
  absl::StatusOr<value::ValueTree> outputs = std::move(*reader).Finish();
  if (!outputs.ok()) return AsFaultOfDaemon(outputs.status());
  result.outputs = *std::move(outputs);
  return result;
}

}  // namespace cipherd::client
