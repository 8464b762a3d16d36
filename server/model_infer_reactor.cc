#include "server/model_infer_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "inference/grpc_service.pb.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/transport.h"
#include "proto/inference/inference_codec.h"
#include "server/wire_message.h"

namespace cipherd::server {

ModelInferReactor::ModelInferReactor(const ServiceEnvironment& environment,
                                     const InferenceOptions& options, engine::ByteBudget& messages,
                                     grpc::CallbackServerContext& context)
    : EvaluationReactor("ModelInfer", environment, context),
      max_payload_bytes_(options.max_payload_bytes) {
  Start([&]() -> absl::Status {
    CIPHERD_ASSIGN_OR_RETURN(charge_, messages.Reserve(static_cast<int64_t>(
                                          max_payload_bytes_ + transport::kMessageOverheadBytes)));
    return absl::OkStatus();
  });
}

absl::Status ModelInferReactor::Receive(grpc::ByteBuffer& bytes) {
  if (evaluation_.has_begun()) {
    return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "message", "expected one, got another");
  }
  inference::ModelInferRequest request;
  CIPHERD_RETURN_IF_ERROR(ParseMessage(bytes, request));
  v1::EvaluationHeader header;
  const absl::Status header_status = oip::DecodeInferHeader(request, &header);
  const uint64_t payload_bytes = oip::InferPayloadBytes(request);
  oip::InferInputs inputs;
  const auto inputs_for =
      [&](const RegisteredProgram& program) -> absl::StatusOr<const v1::ValueTree*> {
    CIPHERD_RETURN_IF_ERROR(header_status);
    CIPHERD_ASSIGN_OR_RETURN(inputs,
                             oip::DecodeInferInputs(request, program.description, program.context));
    CIPHERD_ASSIGN_OR_RETURN(wanted_outputs_,
                             oip::DecodeWantedOutputs(request, program.description));
    return &inputs.tree;
  };
  CIPHERD_RETURN_IF_ERROR(evaluation_.Begin(header, inputs_for, caller(), payload_bytes));
  const uint64_t output_bytes = evaluation_.output_bytes();
  if (payload_bytes > max_payload_bytes_ || output_bytes > max_payload_bytes_) {
    return codec::Refuse(
        v1::ERROR_REASON_LIMIT_EXCEEDED, "inputs",
        absl::StrCat("inputs of ", payload_bytes, " and outputs of ", output_bytes,
                     " bytes: one message of this call holds at most ", max_payload_bytes_,
                     "; use EvaluateStream of cipherd.v1.EvaluationService"));
  }
  for (std::string_view contents : inputs.contents) {
    CIPHERD_RETURN_IF_ERROR(evaluation_.Write(contents));
  }
  id_ = std::move(*request.mutable_id());
  charge_.ShrinkTo(static_cast<int64_t>(output_bytes));
  return absl::OkStatus();
}

absl::Status ModelInferReactor::NothingCame() const {
  return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "message", "expected one, got none");
}

void ModelInferReactor::Reply() {
  const absl::Status status = EncodeResult();
  if (status.ok()) {
    FinishWithLast(response_);
  } else {
    FinishWith(status);
  }
}

absl::Status ModelInferReactor::EncodeResult() {
  v1::ValueTree outputs;
  v1::StageTimes times;
  CIPHERD_RETURN_IF_ERROR(evaluation_.EncodeResult(&outputs, &times));
  const v1::GetProgramResponse& program = evaluation_.program().description;
  inference::ModelInferResponse response;
  response.set_model_name(program.summary().name());
  response.set_model_version(absl::StrCat(program.summary().version()));
  response.set_id(id_);
  CIPHERD_RETURN_IF_ERROR(
      oip::EncodeInferOutputs(outputs, program, wanted_outputs_, evaluation_.result(), &response));
  return SerializeMessage(response, response_);
}

void ModelInferReactor::OnStall() {
  if (state() == State::kReceiving) {
    FinishWith(Stalled(environment_.stalls, "the request's message"));
  }
}

}  // namespace cipherd::server
