#include "proto/codec/program_codec.h"

#include <google/protobuf/text_format.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/enum_codec.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/operation_codec.h"
#include "proto/codec/text_message.h"
#include "proto/codec/value_admission.h"

namespace cipherd::codec {
namespace {

using google::protobuf::TextFormat;

// Absent numbers of a layout mean 1.
int64_t OneIfAbsent(uint32_t number) { return number == 0 ? 1 : number; }

programs::SlotLayout DecodeLayout(const v1::SlotLayout& message) {
  return {.item_count = OneIfAbsent(message.item_count()),
          .item_stride = OneIfAbsent(message.item_stride()),
          .element_count = OneIfAbsent(message.element_count()),
          .element_stride = OneIfAbsent(message.element_stride())};
}

absl::Status EncodeLayout(const programs::SlotLayout& layout, std::string_view path,
                          v1::SlotLayout* out) {
  const std::string at = absl::StrCat(std::string(path), ".layout");
  CIPHERD_ASSIGN_OR_RETURN(const uint32_t item_count,
                           internal::ToUint32(layout.item_count, 1, at + ".item_count"));
  CIPHERD_ASSIGN_OR_RETURN(const uint32_t item_stride,
                           internal::ToUint32(layout.item_stride, 1, at + ".item_stride"));
  CIPHERD_ASSIGN_OR_RETURN(const uint32_t element_count,
                           internal::ToUint32(layout.element_count, 1, at + ".element_count"));
  CIPHERD_ASSIGN_OR_RETURN(const uint32_t element_stride,
                           internal::ToUint32(layout.element_stride, 1, at + ".element_stride"));
  out->set_item_count(item_count);
  out->set_item_stride(item_stride);
  out->set_element_count(element_count);
  out->set_element_stride(element_stride);
  return absl::OkStatus();
}

std::string Indexed(std::string_view path, const char* list, int index) {
  return absl::StrCat(std::string(path), ".", list, "[", index, "]");
}

}  // namespace

absl::StatusOr<programs::ProgramInput> DecodeProgramInput(const v1::ProgramInput& message,
                                                          std::string_view path) {
  programs::ProgramInput input;
  input.name = message.name();
  CIPHERD_ASSIGN_OR_RETURN(
      input.depth, internal::ToInt(message.depth(), absl::StrCat(std::string(path), ".depth")));
  input.scale = message.scale();
  input.layout = DecodeLayout(message.layout());
  input.description = message.description();
  input.lower = message.lower();
  input.upper = message.upper();
  return input;
}

absl::Status EncodeProgramInput(const programs::ProgramInput& input, std::string_view path,
                                v1::ProgramInput* out) {
  out->Clear();
  CIPHERD_ASSIGN_OR_RETURN(
      const uint32_t depth,
      internal::ToUint32(input.depth, 0, absl::StrCat(std::string(path), ".depth")));
  out->set_name(input.name);
  out->set_depth(depth);
  out->set_scale(input.scale);
  out->set_description(input.description);
  out->set_lower(input.lower);
  out->set_upper(input.upper);
  return EncodeLayout(input.layout, path, out->mutable_layout());
}

absl::StatusOr<programs::ProgramOutput> DecodeProgramOutput(const v1::ProgramOutput& message,
                                                            std::string_view path) {
  if (message.edge().empty()) return internal::Mismatch(path, ".edge", "a name", "none");
  return programs::ProgramOutput{.name = message.name(),
                                 .edge = message.edge(),
                                 .layout = DecodeLayout(message.layout()),
                                 .description = message.description(),
                                 .magnitude_bound = message.magnitude_bound(),
                                 .errors = {.largest = message.errors().largest(),
                                            .root_mean_square = message.errors().root_mean_square(),
                                            .element_count = message.errors().element_count()}};
}

absl::Status EncodeProgramOutput(const programs::ProgramOutput& output, std::string_view path,
                                 v1::ProgramOutput* out) {
  out->Clear();
  out->set_name(output.name);
  out->set_edge(output.edge);
  out->set_description(output.description);
  out->set_magnitude_bound(output.magnitude_bound);
  if (output.errors != programs::MeasuredErrors()) {
    CIPHERD_ASSIGN_OR_RETURN(
        const uint32_t element_count,
        internal::ToUint32(output.errors.element_count, 0,
                           absl::StrCat(std::string(path), ".errors.element_count")));
    out->mutable_errors()->set_largest(output.errors.largest);
    out->mutable_errors()->set_root_mean_square(output.errors.root_mean_square);
    out->mutable_errors()->set_element_count(element_count);
  }
  return EncodeLayout(output.layout, path, out->mutable_layout());
}

absl::StatusOr<programs::ProgramSpec> DecodeProgram(const v1::Program& message,
                                                    std::string_view path) {
  programs::ProgramSpec spec;
  spec.name = message.name();
  spec.version = message.version();
  spec.description = message.description();
  if (!message.has_context()) {
    return internal::Mismatch(path, ".context", "a context", "none");
  }
  CIPHERD_ASSIGN_OR_RETURN(
      spec.context,
      DecodeContextUnvalidated(message.context(), absl::StrCat(std::string(path), ".context")));
  spec.constants_file = message.constants_file();
  for (int i = 0; i < message.inputs_size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(programs::ProgramInput input,
                             DecodeProgramInput(message.inputs(i), Indexed(path, "inputs", i)));
    spec.inputs.push_back(std::move(input));
  }
  for (int i = 0; i < message.operations_size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(
        programs::Operation operation,
        internal::DecodeOperation(message.operations(i), Indexed(path, "operations", i)));
    spec.operations.push_back(std::move(operation));
  }
  for (int i = 0; i < message.outputs_size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(programs::ProgramOutput output,
                             DecodeProgramOutput(message.outputs(i), Indexed(path, "outputs", i)));
    spec.outputs.push_back(std::move(output));
  }
  return spec;
}

absl::StatusOr<v1::Program> EncodeProgram(const programs::ProgramSpec& spec) {
  constexpr std::string_view kPath = "program";
  v1::Program message;
  message.set_name(spec.name);
  CIPHERD_ASSIGN_OR_RETURN(const uint32_t version,
                           internal::ToUint32(spec.version, 0, "program.version"));
  message.set_version(version);
  message.set_description(spec.description);
  EncodeContext(spec.context, message.mutable_context());
  message.set_constants_file(spec.constants_file);
  for (const programs::ProgramInput& input : spec.inputs) {
    const std::string at = Indexed(kPath, "inputs", message.inputs_size());
    CIPHERD_RETURN_IF_ERROR(EncodeProgramInput(input, at, message.add_inputs()));
  }
  for (const programs::Operation& operation : spec.operations) {
    const std::string at = Indexed(kPath, "operations", message.operations_size());
    CIPHERD_RETURN_IF_ERROR(internal::EncodeOperation(operation, at, message.add_operations()));
  }
  for (const programs::ProgramOutput& output : spec.outputs) {
    const std::string at = Indexed(kPath, "outputs", message.outputs_size());
    CIPHERD_RETURN_IF_ERROR(EncodeProgramOutput(output, at, message.add_outputs()));
  }
  return message;
}

absl::StatusOr<programs::ProgramSpec> ParseProgramText(std::string_view text,
                                                       std::string_view path) {
  v1::Program message;
  CIPHERD_RETURN_IF_ERROR(internal::ParseTextMessage(text, path, message));
  return DecodeProgram(message, path);
}

absl::StatusOr<std::string> PrintProgramText(const programs::ProgramSpec& spec) {
  CIPHERD_ASSIGN_OR_RETURN(const v1::Program message, EncodeProgram(spec));
  TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  if (!printer.PrintToString(message, &text)) {
    return absl::InternalError(absl::StrCat("program '", spec.name, "' cannot be printed"));
  }
  return text;
}

void EncodeKeyId(const ckks::KeyId& id, v1::KeyId* out) {
  out->set_type(internal::ToWire(id.type));
  out->set_rotation_step(id.rotation_step);
}

absl::StatusOr<ckks::KeyId> DecodeKeyId(const v1::KeyId& message, std::string_view path) {
  const std::optional<value::ValueType> type = internal::FromWire<value::ValueType>(message.type());
  if (!type.has_value() || !kEvaluationKeyTypes.Contains(*type)) {
    return internal::Mismatch(path, ".type", kEvaluationKeyTypes.ToString(),
                              type.has_value()
                                  ? std::string(value::ToString(*type))
                                  : absl::StrCat("number ", static_cast<int>(message.type())));
  }
  const bool is_rotation = *type == value::ValueType::kRotationKey;
  if (is_rotation ? message.rotation_step() < 1 : message.rotation_step() != 0) {
    return internal::Mismatch(path, ".rotation_step", is_rotation ? "at least 1" : "0",
                              absl::StrCat(message.rotation_step()));
  }
  return ckks::KeyId{*type, message.rotation_step()};
}

}  // namespace cipherd::codec
