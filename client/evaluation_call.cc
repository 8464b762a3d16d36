#include "client/evaluation_call.h"

#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/call_status.h"
#include "core/base/status_macros.h"
#include "grpcpp/support/client_callback.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/tree_admission.h"

namespace cipherd::client {
namespace {

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

class UnaryCall final : public EvaluationCall {
 public:
  using EvaluationCall::EvaluationCall;

  void Start(v1::EvaluationService::Stub& stub, v1::EvaluationHeader header,
             codec::PayloadSource payload, std::shared_ptr<UnaryCall> self) {
    payload.TakeInto(payload.total_bytes(), request_.mutable_payload());
    *request_.mutable_header() = std::move(header);
    result_.sent_bytes = request_.ByteSizeLong();
    stub.async()->Evaluate(context(), &request_, &response_,
                           [this, self = std::move(self)](const grpc::Status& status) {
                             Report(Read(StatusOfEnd(status)));
                           });
  }

 private:
  absl::Status Read(const absl::Status& status) {
    CIPHERD_RETURN_IF_ERROR(status);
    result_.received_bytes = response_.ByteSizeLong();
    result_.stage_times = response_.stage_times();
    return AsFaultOfDaemon(ReadPayload());
  }

  absl::Status ReadPayload() {
    CIPHERD_ASSIGN_OR_RETURN(
        codec::PayloadReader reader,
        ReadOutputs(*program_, limits_, response_.outputs(), response_.payload().size()));
    CIPHERD_RETURN_IF_ERROR(reader.Write(std::string_view(response_.payload())));
    CIPHERD_ASSIGN_OR_RETURN(result_.outputs, std::move(reader).Finish());
    return absl::OkStatus();
  }

  v1::EvaluateRequest request_;
  v1::EvaluateResponse response_;
};

// gRPC runs reactions to reads and to writes at once; each side has members of its own, and OnDone
// comes after both.
class StreamCall final
    : public EvaluationCall,
      public grpc::ClientBidiReactor<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse> {
 public:
  using EvaluationCall::EvaluationCall;

  void Start(v1::EvaluationService::Stub& stub, v1::EvaluationHeader header,
             codec::PayloadSource payload, OutputCallback on_output,
             std::shared_ptr<StreamCall> self) {
    self_ = std::move(self);
    on_output_ = std::move(on_output);
    payload_ = std::move(payload);
    *request_.mutable_header() = std::move(header);
    stub.async()->EvaluateStream(context(), this);
    Write();
    StartRead(&response_);
    StartCall();
  }

  void OnWriteDone(bool ok) override {
    // A failed write means that the daemon has ended the call: its status is on the way.
    if (!ok || payload_.remaining_bytes() == 0) return;
    payload_.TakeInto(limits_.max_chunk_bytes, request_.mutable_chunk());
    Write();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    result_.received_bytes += response_.ByteSizeLong();
    fault_ = Receive();
    if (fault_.ok()) {
      StartRead(&response_);
    } else {
      TryCancel();
    }
  }

  void OnDone(const grpc::Status& status) override {
    // Dies with the last owner, at the earliest when this returns.
    const std::shared_ptr<StreamCall> self = std::move(self_);
    result_.sent_bytes = sent_bytes_;
    Report(fault_.ok() ? Read(StatusOfEnd(status)) : AsFaultOfDaemon(fault_));
  }

 private:
  void Write() {
    sent_bytes_ += request_.ByteSizeLong();
    if (payload_.remaining_bytes() > 0) {
      StartWrite(&request_);
    } else {
      StartWriteLast(&request_, grpc::WriteOptions());
    }
  }

  absl::Status Receive() {
    if (response_.has_header() && !reader_.has_value()) {
      result_.stage_times = response_.header().stage_times();
      CIPHERD_ASSIGN_OR_RETURN(
          reader_, ReadOutputs(*program_, limits_, response_.header().outputs(), std::nullopt));
      return absl::OkStatus();
    }
    if (response_.has_chunk() && reader_.has_value()) {
      CIPHERD_RETURN_IF_ERROR(reader_->Write(std::string_view(response_.chunk())));
      return on_output_ ? TellCompletedOutputs() : absl::OkStatus();
    }
    const bool is_complete = reader_.has_value() && reader_->remaining_bytes() == 0;
    if (response_.has_stage_times() && is_complete && !has_times_) {
      has_times_ = true;
      result_.stage_times = response_.stage_times();
      return absl::OkStatus();
    }
    return absl::InternalError("expected one header, then chunks, then at most the stage times");
  }

  absl::Status TellCompletedOutputs() {
    while (true) {
      CIPHERD_ASSIGN_OR_RETURN(std::optional<value::ValueTree> output,
                               reader_->CompletedChild(told_count_));
      if (!output.has_value()) return absl::OkStatus();
      on_output_(told_count_++, *std::move(output));
    }
  }

  absl::Status Read(const absl::Status& status) {
    CIPHERD_RETURN_IF_ERROR(status);
    if (!reader_.has_value()) {
      return absl::InternalError("the daemon ended the evaluation without a result");
    }
    absl::StatusOr<value::ValueTree> outputs = (*std::move(reader_)).Finish();
    if (!outputs.ok()) return AsFaultOfDaemon(outputs.status());
    result_.outputs = *std::move(outputs);
    return absl::OkStatus();
  }

  std::shared_ptr<StreamCall> self_;

  // Of writes.
  v1::EvaluateStreamRequest request_;
  codec::PayloadSource payload_;
  uint64_t sent_bytes_ = 0;

  // Of reads.
  v1::EvaluateStreamResponse response_;
  std::optional<codec::PayloadReader> reader_;
  OutputCallback on_output_;
  // Outputs that `on_output_` has been told of.
  size_t told_count_ = 0;
  bool has_times_ = false;
  absl::Status fault_;
};

}  // namespace

EvaluationCall::EvaluationCall(ProgramPtr program, const codec::WireLimits& limits,
                               std::string request_id, std::unique_ptr<grpc::ClientContext> context,
                               EvaluationCallback callback)
    : program_(std::move(program)),
      limits_(limits),
      context_(std::move(context)),
      callback_(std::move(callback)) {
  result_.request_id = std::move(request_id);
}

void EvaluationCall::Report(const absl::Status& status) {
  if (status.ok()) {
    callback_(std::move(result_));
  } else {
    callback_(status);
  }
}

void EvaluationCall::Cancel() {
  is_cancelled_.store(true);
  TryCancel();
}

absl::Status EvaluationCall::StatusOfEnd(const grpc::Status& status) const {
  if (status.error_code() == grpc::StatusCode::CANCELLED && is_cancelled_.load()) {
    return CancelledByCaller();
  }
  return StatusOfCall(status);
}

std::shared_ptr<EvaluationCall> StartUnaryEvaluation(
    v1::EvaluationService::Stub& stub, ProgramPtr program, const codec::WireLimits& limits,
    v1::EvaluationHeader header, codec::PayloadSource payload,
    std::unique_ptr<grpc::ClientContext> context, EvaluationCallback callback) {
  auto call = std::make_shared<UnaryCall>(std::move(program), limits, header.request_id(),
                                          std::move(context), std::move(callback));
  call->Start(stub, std::move(header), std::move(payload), call);
  return call;
}

std::shared_ptr<EvaluationCall> StartStreamEvaluation(
    v1::EvaluationService::Stub& stub, ProgramPtr program, const codec::WireLimits& limits,
    v1::EvaluationHeader header, codec::PayloadSource payload,
    std::unique_ptr<grpc::ClientContext> context, OutputCallback on_output,
    EvaluationCallback callback) {
  auto call = std::make_shared<StreamCall>(std::move(program), limits, header.request_id(),
                                           std::move(context), std::move(callback));
  call->Start(stub, std::move(header), std::move(payload), std::move(on_output), call);
  return call;
}

}  // namespace cipherd::client
