#include "proto/inference/inference_codec.h"

#include <bit>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/error_detail.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/signature_codec.h"

namespace cipherd::oip {
namespace {

using codec::internal::Mismatch;
using inference::ModelInferRequest;

// Elements are little-endian on the wire, and words of this machine in a parsed message.
static_assert(std::endian::native == std::endian::little);

// The bytes that the digits of parameter `name` stand for; nothing where there is no such
// parameter.
absl::StatusOr<std::optional<std::string>> DecodeDigestParameter(const ModelInferRequest& request,
                                                                 const std::string& name) {
  const auto it = request.parameters().find(name);
  if (it == request.parameters().end()) return std::nullopt;
  const std::string path = absl::StrCat("parameters['", name, "']");
  if (!it->second.has_string_param()) return Mismatch(path, "", "a string", "another type");
  return codec::EncodeDigest(it->second.string_param(), path);
}

// "'x', 'y'"
template <typename Named>
std::string NamesOf(const google::protobuf::RepeatedPtrField<Named>& all) {
  return absl::StrJoin(all, ", ", [](std::string* out, const Named& named) {
    absl::StrAppend(out, "'", named.name(), "'");
  });
}

// For each of the program's, the position of the request's of the same name, or -1. Refuses names
// that the program does not have, and one that comes twice.
template <typename Known, typename Given>
absl::StatusOr<std::vector<int>> MatchNames(const google::protobuf::RepeatedPtrField<Known>& known,
                                            const google::protobuf::RepeatedPtrField<Given>& given,
                                            std::string_view path) {
  std::vector<int> positions(static_cast<size_t>(known.size()), -1);
  for (int i = 0; i < given.size(); ++i) {
    int at = 0;
    while (at < known.size() && known[at].name() != given[i].name()) ++at;
    if (at == known.size()) {
      return Mismatch(path, absl::StrCat("[", i, "].name"), absl::StrCat("one of ", NamesOf(known)),
                      "another name", v1::ERROR_REASON_SIGNATURE_MISMATCH);
    }
    if (std::exchange(positions[static_cast<size_t>(at)], i) >= 0) {
      return Mismatch(path, absl::StrCat("[", i, "].name"), "each name once",
                      absl::StrCat("'", known[at].name(), "' again"),
                      v1::ERROR_REASON_SIGNATURE_MISMATCH);
    }
  }
  return positions;
}

// Tensors are raw, all of them, or all have contents of their own.
absl::Status CheckContents(const ModelInferRequest& request) {
  const int raw_count = request.raw_input_contents_size();
  if (raw_count != 0 && raw_count != request.inputs_size()) {
    return Mismatch("raw_input_contents", "",
                    absl::StrCat(request.inputs_size(), ", one for each of the inputs"),
                    absl::StrCat(raw_count));
  }
  for (int i = 0; i < request.inputs_size(); ++i) {
    const std::string path = absl::StrCat("inputs[", i, "].contents");
    const inference::InferTensorContents& contents = request.inputs(i).contents();
    if (raw_count != 0 && request.inputs(i).has_contents()) {
      return Mismatch(path, "", "none beside raw_input_contents", "some");
    }
    if (contents.bool_contents_size() + contents.int_contents_size() +
            contents.int64_contents_size() + contents.uint_contents_size() +
            contents.fp32_contents_size() + contents.fp64_contents_size() +
            contents.bytes_contents_size() !=
        0) {
      return Mismatch(path, "", "uint64_contents alone", "others");
    }
  }
  return absl::OkStatus();
}

// Of the request's input `i`.
std::string_view ContentsOf(const ModelInferRequest& request, int i) {
  if (request.raw_input_contents_size() != 0) return request.raw_input_contents(i);
  const auto& words = request.inputs(i).contents().uint64_contents();
  return {reinterpret_cast<const char*>(words.data()),
          static_cast<size_t>(words.size()) * sizeof(uint64_t)};
}

}  // namespace

absl::StatusOr<uint32_t> DecodeModelVersion(std::string_view text, std::string_view path) {
  if (text.empty()) return 0;
  uint32_t version = 0;
  // Digits alone: SimpleAtoi would take signs and spaces.
  if (text.find_first_not_of("0123456789") != std::string_view::npos ||
      !absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &version) || version == 0) {
    return Mismatch(path, "", "a number from 1 on, or nothing for the newest that is ready",
                    "another text");
  }
  return version;
}

absl::Status DecodeInferHeader(const ModelInferRequest& request, v1::EvaluationHeader* header) {
  header->set_program(request.model_name());
  header->set_request_id(request.id());
  absl::Status status;
  const absl::StatusOr<uint32_t> version =
      DecodeModelVersion(request.model_version(), "model_version");
  status.Update(version.status());
  header->set_program_version(version.value_or(0));
  absl::StatusOr<std::optional<std::string>> key_set_id =
      DecodeDigestParameter(request, kKeySetIdParameter);
  status.Update(key_set_id.status());
  if (key_set_id.ok()) header->set_key_set_id((*std::move(key_set_id)).value_or(""));
  return status;
}

uint64_t InferPayloadBytes(const ModelInferRequest& request) {
  uint64_t bytes = 0;
  for (const std::string& raw : request.raw_input_contents()) bytes += raw.size();
  for (const auto& input : request.inputs()) {
    bytes += sizeof(uint64_t) * static_cast<uint64_t>(input.contents().uint64_contents_size());
  }
  return bytes;
}

absl::StatusOr<InferInputs> DecodeInferInputs(const ModelInferRequest& request,
                                              const v1::GetProgramResponse& program,
                                              const codec::KnownContextPtr& context) {
  CIPHERD_ASSIGN_OR_RETURN(const std::optional<std::string> context_id,
                           DecodeDigestParameter(request, kContextIdParameter));
  const std::string context_path = absl::StrCat("parameters['", kContextIdParameter, "']");
  if (!context_id.has_value()) {
    return Mismatch(context_path, "", "the id of the program's context", "none",
                    v1::ERROR_REASON_WRONG_CONTEXT);
  }
  CIPHERD_RETURN_IF_ERROR(
      codec::RequireContext(std::span(&context, 1), *context_id, context_path).status());
  if (request.inputs_size() != program.inputs_size()) {
    return Mismatch("inputs", "",
                    absl::StrCat(program.inputs_size(), " (", NamesOf(program.inputs()), ")"),
                    absl::StrCat(request.inputs_size()), v1::ERROR_REASON_SIGNATURE_MISMATCH);
  }
  // So many names, each once: none is missing.
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<int> positions,
                           MatchNames(program.inputs(), request.inputs(), "inputs"));
  CIPHERD_RETURN_IF_ERROR(CheckContents(request));

  InferInputs inputs;
  v1::ValueTree::Sequence* tuple = inputs.tree.mutable_tuple();
  for (int i = 0; i < program.inputs_size(); ++i) {
    const int at = positions[static_cast<size_t>(i)];
    const ModelInferRequest::InferInputTensor& input = request.inputs(at);
    if (input.datatype() != kResidueDatatype) {
      return Mismatch(absl::StrCat("inputs[", at, "].datatype"), "", kResidueDatatype,
                      "another datatype");
    }
    const std::string_view contents = ContentsOf(request, at);
    // The state is not in the request: it is the one that the program takes.
    const v1::ValueSignature& signature = program.input_signature().tuple().children(i).value();
    codec::DescribeAs(signature,
                      std::span(input.shape().data(), static_cast<size_t>(input.shape_size())),
                      contents.size(), tuple->add_children()->mutable_value());
    inputs.contents.push_back(contents);
  }
  return inputs;
}

absl::StatusOr<std::vector<bool>> DecodeWantedOutputs(const ModelInferRequest& request,
                                                      const v1::GetProgramResponse& program) {
  const auto count = static_cast<size_t>(program.outputs_size());
  if (request.outputs().empty()) return std::vector<bool>(count, true);
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<int> positions,
                           MatchNames(program.outputs(), request.outputs(), "outputs"));
  std::vector<bool> wanted;
  for (int position : positions) wanted.push_back(position >= 0);
  return wanted;
}

absl::Status EncodeInferOutputs(const v1::ValueTree& outputs, const v1::GetProgramResponse& program,
                                const std::vector<bool>& wanted, codec::PayloadSource& payload,
                                inference::ModelInferResponse* response) {
  const v1::ValueTree::Sequence& values = outputs.tuple();
  if (values.children_size() != program.outputs_size() ||
      wanted.size() != static_cast<size_t>(program.outputs_size())) {
    return absl::InternalError(absl::StrCat("outputs: expected ", program.outputs_size(), ", got ",
                                            values.children_size()));
  }
  for (int i = 0; i < values.children_size(); ++i) {
    const v1::Tensor& tensor = values.children(i).value().tensors(0).tensor();
    if (!wanted[static_cast<size_t>(i)]) {
      payload.Take(tensor.byte_count());
      continue;
    }
    inference::ModelInferResponse::InferOutputTensor* output = response->add_outputs();
    output->set_name(program.outputs(i).name());
    output->set_datatype(std::string(kResidueDatatype));
    *output->mutable_shape() = tensor.shape();
    payload.TakeInto(tensor.byte_count(), response->add_raw_output_contents());
  }
  return absl::OkStatus();
}

}  // namespace cipherd::oip
