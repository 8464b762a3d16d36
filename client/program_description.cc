#include "client/program_description.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/key_set.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/program_codec.h"
#include "proto/codec/signature_codec.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::client {
namespace {

absl::Status CheckContextId(const v1::GetProgramResponse& message, const ckks::Context& context) {
  CIPHERD_ASSIGN_OR_RETURN(const std::string stated,
                           codec::DecodeDigest(message.context_id(), "program.context_id"));
  if (stated != context.id()) {
    return absl::InvalidArgumentError(
        absl::StrCat("program.context_id: expected ", context.id(), ", got ", stated));
  }
  return absl::OkStatus();
}

absl::Status DecodeKeys(const v1::GetProgramResponse& message, ProgramDescription& program) {
  std::vector<ckks::KeyId> ids;
  for (int i = 0; i < message.required_keys_size(); ++i) {
    const std::string path = absl::StrCat("program.required_keys[", i, "]");
    CIPHERD_ASSIGN_OR_RETURN(ckks::KeyId id, codec::DecodeKeyId(message.required_keys(i), path));
    ids.push_back(id);
  }
  program.required_keys = ckks::KeyLayout(std::move(ids));
  program.key_bytes =
      static_cast<uint64_t>(ckks::EvaluationKeyBytes(program.context->parameters())) *
      static_cast<uint64_t>(program.required_keys.size());
  return absl::OkStatus();
}

absl::Status DecodeInputsAndOutputs(const v1::GetProgramResponse& message,
                                    ProgramDescription& program) {
  if (message.inputs().empty() || message.outputs().empty()) {
    return absl::InvalidArgumentError("program: expected at least one input and one output");
  }
  const int max_depth = program.context->parameters().max_depth();
  for (int i = 0; i < message.inputs_size(); ++i) {
    const std::string path = absl::StrCat("program.inputs[", i, "]");
    CIPHERD_ASSIGN_OR_RETURN(programs::ProgramInput input,
                             codec::DecodeProgramInput(message.inputs(i), path));
    if (input.depth < 0 || input.depth > max_depth) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ".depth: expected 0 to ", max_depth, ", got ", input.depth));
    }
    if (input.scale == 0) input.scale = program.context->parameters().default_scale;
    program.inputs.push_back(std::move(input));
  }
  for (int i = 0; i < message.outputs_size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(
        programs::ProgramOutput output,
        codec::DecodeProgramOutput(message.outputs(i), absl::StrCat("program.outputs[", i, "]")));
    program.outputs.push_back(std::move(output));
  }
  const codec::WireLimits limits;
  CIPHERD_ASSIGN_OR_RETURN(
      program.input_signature,
      codec::DecodeSignature(message.input_signature(), limits, "program.input_signature"));
  CIPHERD_ASSIGN_OR_RETURN(
      program.output_signature,
      codec::DecodeSignature(message.output_signature(), limits, "program.output_signature"));
  program.input_bytes = message.input_bytes();
  program.output_bytes = message.output_bytes();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ProgramPtr> ProgramDescription::FromMessage(const v1::GetProgramResponse& message,
                                                           ckks::SecurityPolicy policy,
                                                           uint32_t requested_version) {
  auto program = std::make_shared<ProgramDescription>();
  program->name = message.summary().name();
  program->version = message.summary().version();
  if (requested_version != 0 && requested_version != program->version) {
    return absl::InvalidArgumentError(absl::StrCat("program.summary.version: expected ",
                                                   requested_version, ", got ", program->version));
  }
  program->requested_version = requested_version;
  program->description = message.summary().description();
  CIPHERD_ASSIGN_OR_RETURN(ckks::ContextParameters parameters,
                           codec::DecodeContext(message.context(), policy, "program.context"));
  CIPHERD_ASSIGN_OR_RETURN(program->known_context, codec::KnownContext::Create(parameters, policy));
  CIPHERD_ASSIGN_OR_RETURN(program->context, ckks::Context::Create(std::move(parameters), policy));
  CIPHERD_RETURN_IF_ERROR(CheckContextId(message, *program->context));
  CIPHERD_RETURN_IF_ERROR(DecodeKeys(message, *program));
  CIPHERD_RETURN_IF_ERROR(DecodeInputsAndOutputs(message, *program));
  return program;
}

}  // namespace cipherd::client
