#include "proto/inference/model_metadata.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "google/protobuf/util/json_util.h"
#include "proto/codec/context_codec.h"
#include "proto/inference/inference_codec.h"

namespace cipherd::oip {
namespace {

using Properties = google::protobuf::Map<std::string, std::string>;

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return absl::InternalError("properties: a message that is no JSON");
  return json;
}

std::string_view NameOf(v1::PolynomialDomain domain) {
  switch (domain) {
    case v1::POLYNOMIAL_DOMAIN_COEFFICIENT:
      return "coefficient";
    case v1::POLYNOMIAL_DOMAIN_NTT:
      return "ntt";
    default:
      return "";
  }
}

std::string NameOf(const v1::KeyId& key) {
  switch (key.type()) {
    case v1::VALUE_TYPE_RELINEARIZATION_KEY:
      return "relinearization";
    case v1::VALUE_TYPE_CONJUGATION_KEY:
      return "conjugation";
    case v1::VALUE_TYPE_ROTATION_KEY:
      return absl::StrCat("rotation:", key.rotation_step());
    default:
      return "";
  }
}

// `kind` is "inputs" or "outputs"; `port` a v1::ProgramInput or v1::ProgramOutput.
template <typename Port>
absl::Status AddTensor(const char* kind, const Port& port, const v1::ValueSignature& signature,
                       inference::ModelMetadataResponse::TensorMetadata* tensor,
                       Properties& properties) {
  if (signature.tensors_size() != 1) {
    return absl::InternalError(absl::StrCat(kind, ": expected values of one tensor"));
  }
  tensor->set_name(port.name());
  tensor->set_datatype(std::string(kResidueDatatype));
  *tensor->mutable_shape() = signature.tensors(0).tensor().shape();
  const v1::ValueMetadata& state = signature.metadata();
  const std::string prefix = absl::StrCat(kind, ".", port.name(), ".");
  properties[prefix + "depth"] = absl::StrCat(state.depth());
  // Enough digits to read the same number back.
  properties[prefix + "scale"] = absl::StrFormat("%.17g", state.scale());
  properties[prefix + "prime_ids"] = absl::StrJoin(state.prime_ids().id(), ",");
  properties[prefix + "domain"] = std::string(NameOf(state.domain()));
  CIPHERD_ASSIGN_OR_RETURN(properties[prefix + "layout"], ToJson(port.layout()));
  properties[prefix + "description"] = port.description();
  return absl::OkStatus();
}

}  // namespace

absl::Status EncodeModelMetadata(const v1::GetProgramResponse& program,
                                 const std::vector<uint32_t>& versions,
                                 inference::ModelMetadataResponse* metadata) {
  const auto& inputs = program.input_signature().tuple();
  const auto& outputs = program.output_signature().tuple();
  if (inputs.children_size() != program.inputs_size() ||
      outputs.children_size() != program.outputs_size()) {
    return absl::InternalError("signatures do not belong to the inputs and outputs");
  }
  metadata->set_name(program.summary().name());
  for (uint32_t version : versions) metadata->add_versions(absl::StrCat(version));
  metadata->set_platform(kPlatform);
  Properties& properties = *metadata->mutable_properties();
  for (int i = 0; i < program.inputs_size(); ++i) {
    CIPHERD_RETURN_IF_ERROR(AddTensor("inputs", program.inputs(i), inputs.children(i).value(),
                                      metadata->add_inputs(), properties));
  }
  for (int i = 0; i < program.outputs_size(); ++i) {
    CIPHERD_RETURN_IF_ERROR(AddTensor("outputs", program.outputs(i), outputs.children(i).value(),
                                      metadata->add_outputs(), properties));
  }
  properties["version"] = absl::StrCat(program.summary().version());
  properties["description"] = program.summary().description();
  CIPHERD_ASSIGN_OR_RETURN(properties[kContextIdParameter],
                           codec::DecodeDigest(program.context_id(), kContextIdParameter));
  CIPHERD_ASSIGN_OR_RETURN(properties["context"], ToJson(program.context()));
  properties["required_keys"] =
      absl::StrJoin(program.required_keys(), ",",
                    [](std::string* out, const v1::KeyId& key) { out->append(NameOf(key)); });
  properties["key_bytes"] = absl::StrCat(program.key_bytes());
  properties["input_bytes"] = absl::StrCat(program.input_bytes());
  properties["output_bytes"] = absl::StrCat(program.output_bytes());
  return absl::OkStatus();
}

}  // namespace cipherd::oip
