#include "server/evaluation.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/error_detail.h"
#include "proto/codec/tree_admission.h"
#include "proto/codec/tree_encoder.h"
#include "proto/grpc_status/transport.h"
#include "server/program_version.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

constexpr size_t kMaxRequestIdBytes = 64;

absl::Status CheckRequestId(std::string_view id) {
  if (id.size() > kMaxRequestIdBytes) {
    return codec::Refuse(
        v1::ERROR_REASON_LIMIT_EXCEEDED, "request_id",
        absl::StrCat("expected at most ", kMaxRequestIdBytes, " characters, got ", id.size()));
  }
  if (!std::all_of(id.begin(), id.end(), absl::ascii_isprint)) {
    return codec::Refuse(v1::ERROR_REASON_MALFORMED_VALUE, "request_id",
                         "expected printable characters");
  }
  return absl::OkStatus();
}

std::string NewRequestId() {
  static std::atomic<uint64_t> count = 0;
  return absl::StrCat("cipherd-", ++count);
}

// That the call has come where the keys of its message are.
absl::Status CheckRoute(const Caller& caller, const std::string& key_set_id) {
  if (caller.routed_by.empty() || caller.routed_by == key_set_id) return absl::OkStatus();
  return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "key_set_id",
                       absl::StrCat("expected the set of the metadata ", transport::kKeySetMetadata,
                                    ", got ", key_set_id.empty() ? "none" : key_set_id));
}

void DescribeInLog(const engine::RequestHead& head, engine::RequestState state, LogEvent& log) {
  log.Add("request_id", head.request_id)
      .Add("tenant", head.tenant)
      .Add("program", head.program)
      .Add("outcome", ToString(state));
}

void DescribeInLog(const engine::StageTimes& times, LogEvent& log) {
  for (const engine::Stage& stage : engine::kStages) log.Add(stage.log_key, times.*stage.seconds);
}

}  // namespace

Evaluation::~Evaluation() {
  if (request_ != nullptr && !engine::IsTerminal(request_->state())) {
    spdlog::error("an evaluation was dropped before its end");
  }
}

absl::Status Evaluation::Begin(const v1::EvaluationHeader& header, const Caller& caller,
                               std::optional<uint64_t> actual_payload_bytes) {
  return Begin(
      header, [&](const RegisteredProgram&) { return &header.inputs(); }, caller,
      actual_payload_bytes);
}

absl::Status Evaluation::Begin(const v1::EvaluationHeader& header, InputsFor inputs_for,
                               const Caller& caller, std::optional<uint64_t> actual_payload_bytes) {
  engine::Engine& engine = environment_.engine;
  began_at_ = engine.clock().Now();
  const absl::Status request_id_status = CheckRequestId(header.request_id());
  const absl::StatusOr<std::string> key_set_id =
      header.key_set_id().empty() ? std::string()
                                  : codec::DecodeDigest(header.key_set_id(), "key_set_id");
  {
    absl::MutexLock lock(&mu_);
    request_ = engine.Open({.program = header.program(),
                            .version = header.program_version(),
                            .tenant = caller.tenant,
                            .key_set_id = key_set_id.value_or(""),
                            .request_id = header.request_id().empty() || !request_id_status.ok()
                                              ? NewRequestId()
                                              : header.request_id(),
                            .deadline = caller.deadline});
    if (is_cancelled_) request_->RequestCancel();
  }
  CIPHERD_RETURN_IF_ERROR(request_id_status);
  CIPHERD_RETURN_IF_ERROR(key_set_id.status());
  CIPHERD_RETURN_IF_ERROR(CheckRoute(caller, *key_set_id));

  const auto find = [&] {
    return FindProgramVersion(environment_.programs, engine, header.program(),
                              header.program_version());
  };
  CIPHERD_ASSIGN_OR_RETURN(RegisteredProgramPtr program, find());
  while (true) {
    CIPHERD_ASSIGN_OR_RETURN(const v1::ValueTree* const inputs, inputs_for(*program));
    CIPHERD_ASSIGN_OR_RETURN(
        codec::AdmittedTree admitted,
        codec::AdmitTree(*inputs,
                         {.contexts = std::span(&program->context, 1),
                          .signature = &program->program->info().input_signature,
                          .max_payload_bytes = environment_.limits.max_request_bytes,
                          .actual_payload_bytes = actual_payload_bytes},
                         environment_.limits, "inputs"));
    const absl::Status granted = engine.Admit(*request_, program->program.get());
    if (granted.ok()) {
      CIPHERD_ASSIGN_OR_RETURN(reader_,
                               codec::PayloadReader::Into(std::move(admitted), request_->inputs()));
      program_ = std::move(program);
      return absl::OkStatus();
    }
    if (!absl::IsUnavailable(granted)) return granted;
    // Where it has been replaced meanwhile, its successor takes the request.
    CIPHERD_ASSIGN_OR_RETURN(RegisteredProgramPtr successor, find());
    if (successor == program) return granted;
    program = std::move(successor);
  }
}

absl::Status Evaluation::Write(std::string_view chunk) {
  CIPHERD_RETURN_IF_ERROR(request_->CheckAlive());
  return reader_->Write(chunk);
}

void Evaluation::Submit(engine::Request::Continuation continuation,
                        engine::Request::OutputListener listener) {
  const absl::Status complete = (*std::exchange(reader_, std::nullopt)).Finish().status();
  if (!complete.ok()) {
    continuation(complete);
    return;
  }
  engine::Engine& engine = environment_.engine;
  request_->times().decode_seconds = absl::ToDoubleSeconds(engine.clock().Now() - began_at_);
  if (listener) request_->set_output_listener(std::move(listener));
  engine.Submit(request_, [this, continuation = std::move(continuation)](const absl::Status& s) {
    if (s.ok()) result_at_ = environment_.engine.clock().Now();
    continuation(s);
  });
}

absl::Status Evaluation::EncodeOutputs(v1::ValueTree* outputs) {
  CIPHERD_ASSIGN_OR_RETURN(result_, codec::EncodeTree(request_->outputs(), "outputs", outputs));
  output_ends_.clear();
  uint64_t end = 0;
  for (const value::ValueTree& output : request_->outputs().children()) {
    output_ends_.push_back(end += static_cast<uint64_t>(value::ValueTreeNbytes(output)));
  }
  return absl::OkStatus();
}

uint64_t Evaluation::OutputBytes(size_t count) const {
  return count == 0 ? 0 : output_ends_[count - 1];
}

absl::Status Evaluation::EncodeResult(v1::ValueTree* outputs, v1::StageTimes* times) {
  CIPHERD_RETURN_IF_ERROR(EncodeOutputs(outputs));
  EncodeTimes(times);
  return absl::OkStatus();
}

void Evaluation::EncodeTimes(v1::StageTimes* times) {
  const engine::StageTimes& stages = request_->times();
  times->set_decode_seconds(stages.decode_seconds);
  times->set_queue_seconds(stages.queue_seconds);
  times->set_batch_wait_seconds(stages.batch_wait_seconds);
  times->set_transfer_in_seconds(stages.transfer_in_seconds);
  times->set_device_wait_seconds(stages.device_wait_seconds);
  times->set_replay_seconds(stages.replay_seconds);
  times->set_transfer_out_seconds(stages.transfer_out_seconds);
  times->set_encode_seconds(absl::ToDoubleSeconds(environment_.engine.clock().Now() - result_at_));
}

void Evaluation::End(const absl::Status& status) {
  if (request_ == nullptr) return;
  reader_.reset();
  result_.reset();
  const absl::Time now = environment_.engine.clock().Now();
  if (status.ok()) {
    request_->times().encode_seconds = absl::ToDoubleSeconds(now - result_at_);
    environment_.metrics.ObserveEvaluation(
        request_->program().info().name, absl::ToDoubleSeconds(now - began_at_), request_->times());
  }
  // Where the engine has ended it already, its state is terminal and stays.
  const engine::RequestState state = request_->state();
  if (!engine::IsTerminal(state)) request_->Finish(state, status);
  DescribeInLog(request_->head(), request_->state(), rpc_.log());
  if (status.ok()) DescribeInLog(request_->times(), rpc_.log());
  rpc_.LogAlways();
}

void Evaluation::Cancel() {
  engine::RequestPtr request;
  {
    absl::MutexLock lock(&mu_);
    is_cancelled_ = true;
    request = request_;
  }
  if (request != nullptr) environment_.engine.Cancel(request);
}

}  // namespace cipherd::server
