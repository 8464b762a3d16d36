#include "proto/codec/model_codec.h"

#include <google/protobuf/util/json_util.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/status_macros.h"
#include "core/planning/constant_numbers.h"
#include "core/value/tensor.h"
#include "proto/codec/error_detail.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/model_operation_codec.h"
#include "proto/codec/operation_codec.h"
#include "proto/codec/text_message.h"

namespace cipherd::codec {
namespace {

// Dimensions of a tensor.
constexpr int kMaxRank = 8;

std::string Indexed(std::string_view path, const char* list, int index) {
  return absl::StrCat(std::string(path), ".", list, "[", index, "]");
}

absl::StatusOr<planning::ModelInput> DecodeInput(const v1::ModelInput& message,
                                                 std::string_view path) {
  if (message.shape_size() > kMaxRank) {
    return internal::AboveLimit(path, ".shape", kMaxRank, message.shape_size());
  }
  planning::ModelInput input = {.name = message.name(),
                                .shape = {message.shape().begin(), message.shape().end()},
                                .description = message.description()};
  if (message.lower() != 0 || message.upper() != 0) {
    input.lower = message.lower();
    input.upper = message.upper();
  }
  return input;
}

template <typename T>
absl::StatusOr<value::Tensor> MakeConstant(const v1::ModelConstant& message, value::DType dtype,
                                           const google::protobuf::RepeatedField<T>& numbers,
                                           std::string_view path) {
  std::vector<int64_t> shape(message.shape().begin(), message.shape().end());
  if (shape.empty()) shape.push_back(numbers.size());
  const std::optional<int64_t> count = base::CheckedElementCount(shape);
  if (count != numbers.size()) {
    return internal::Mismatch(path, "", absl::StrCat("numbers for shape ", internal::ListOf(shape)),
                              absl::StrCat(numbers.size()));
  }
  CIPHERD_ASSIGN_OR_RETURN(value::Tensor tensor, value::Tensor::AllocateHost(dtype, shape));
  if (*count > 0) std::memcpy(tensor.data(), numbers.data(), *count * sizeof(T));
  return tensor;
}

absl::StatusOr<value::Tensor> DecodeConstant(const v1::ModelConstant& message,
                                             std::string_view path) {
  if (message.shape_size() > kMaxRank) {
    return internal::AboveLimit(path, ".shape", kMaxRank, message.shape_size());
  }
  if (message.values().empty() == message.integers().empty()) {
    return internal::Mismatch(path, "", "either values or integers",
                              message.values().empty() ? "neither" : "both");
  }
  return message.integers().empty()
             ? MakeConstant(message, value::DType::kFloat64, message.values(), path)
             : MakeConstant(message, value::DType::kInt64, message.integers(), path);
}

void EncodeConstant(const std::string& name, const value::Tensor& tensor, v1::ModelConstant* out) {
  out->set_name(name);
  if (tensor.shape().size() != 1) {
    out->mutable_shape()->Assign(tensor.shape().begin(), tensor.shape().end());
  }
  if (tensor.dtype() == value::DType::kInt64 || tensor.dtype() == value::DType::kInt32) {
    const std::vector<int64_t> numbers = planning::IntegersOf(tensor);
    out->mutable_integers()->Assign(numbers.begin(), numbers.end());
  } else {
    const std::vector<double> numbers = planning::NumbersOf(tensor);
    out->mutable_values()->Assign(numbers.begin(), numbers.end());
  }
}

}  // namespace

absl::StatusOr<planning::Model> DecodeModel(const v1::Model& message, std::string_view path) {
  planning::Model model;
  model.name = message.name();
  model.version = message.version() == 0 ? 1 : message.version();
  model.description = message.description();
  model.constants_file = message.constants_file();
  for (int i = 0; i < message.inputs_size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(model.inputs.emplace_back(),
                             DecodeInput(message.inputs(i), Indexed(path, "inputs", i)));
  }
  for (int i = 0; i < message.operations_size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(
        model.operations.emplace_back(),
        internal::DecodeModelOperation(message.operations(i), Indexed(path, "operations", i)));
  }
  for (const v1::ModelOutput& output : message.outputs()) {
    model.outputs.push_back({output.name(), output.edge(), output.description()});
  }
  for (int i = 0; i < message.constants_size(); ++i) {
    const v1::ModelConstant& constant = message.constants(i);
    const std::string at = Indexed(path, "constants", i);
    CIPHERD_ASSIGN_OR_RETURN(value::Tensor tensor, DecodeConstant(constant, at));
    if (!model.constants.emplace(constant.name(), std::move(tensor)).second) {
      return internal::Mismatch(at, ".name", "a name of its own", "one that another constant has");
    }
  }
  return model;
}

absl::StatusOr<v1::Model> EncodeModel(const planning::Model& model) {
  v1::Model message;
  message.set_name(model.name);
  CIPHERD_ASSIGN_OR_RETURN(const uint32_t version,
                           internal::ToUint32(model.version, 1, "model.version"));
  message.set_version(version);
  message.set_description(model.description);
  message.set_constants_file(model.constants_file);
  for (const planning::ModelInput& input : model.inputs) {
    v1::ModelInput* out = message.add_inputs();
    out->set_name(input.name);
    out->mutable_shape()->Assign(input.shape.begin(), input.shape.end());
    out->set_lower(input.lower);
    out->set_upper(input.upper);
    out->set_description(input.description);
    if (input.lower == 0 && input.upper == 0) {
      return internal::Mismatch(Indexed("model", "inputs", message.inputs_size() - 1), ".upper",
                                "bounds other than 0 and 0, which stand for none", "these");
    }
  }
  for (const planning::ModelOperation& operation : model.operations) {
    const std::string at = Indexed("model", "operations", message.operations_size());
    CIPHERD_RETURN_IF_ERROR(
        internal::EncodeModelOperation(operation, at, message.add_operations()));
  }
  for (const planning::ModelOutput& output : model.outputs) {
    v1::ModelOutput* out = message.add_outputs();
    out->set_name(output.name);
    out->set_edge(output.edge);
    out->set_description(output.description);
  }
  if (model.constants_file.empty()) {
    for (const auto& [name, tensor] : model.constants) {
      EncodeConstant(name, tensor, message.add_constants());
    }
  }
  return message;
}

absl::StatusOr<planning::Model> ParseModelText(std::string_view text, std::string_view path) {
  v1::Model message;
  CIPHERD_RETURN_IF_ERROR(internal::ParseTextMessage(text, path, message));
  return DecodeModel(message, path);
}

absl::StatusOr<planning::Model> ModelFromJson(std::string_view json, std::string_view path) {
  v1::Model message;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &message);
  if (!status.ok()) {
    return Refuse(v1::ERROR_REASON_MALFORMED_VALUE, path, std::string(status.message()));
  }
  return DecodeModel(message, path);
}

absl::Status AddConstants(programs::Constants constants, planning::Model& model) {
  // Names that both have stay behind.
  model.constants.merge(constants);
  if (constants.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("constant '", constants.begin()->first, "': both in the model and in its file"));
}

}  // namespace cipherd::codec
