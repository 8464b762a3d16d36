// Models between their text form, JSON, the wire and core/planning.
//
//   CIPHERD_ASSIGN_OR_RETURN(Model model, codec::ParseModelText(text, "iris.textproto"));
//   CIPHERD_ASSIGN_OR_RETURN(Model model, codec::ModelFromJson(json, "model"));
//
// Parsing checks the form: syntax, known fields, one kind for each operation, numbers that fit,
// constants as large as their shapes say. What a model means is for core/planning/model_check.h to
// check. A model's constants are those that stand in it; the caller adds those of constants_file
// (AddConstants). Errors are InvalidArgument. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/model.pb.h"
#include "core/planning/model.h"

namespace cipherd::codec {

// `path` names the model in messages; nothing is read from it. Syntax errors give its line and
// column.
absl::StatusOr<planning::Model> ParseModelText(std::string_view text, std::string_view path);
// JSON as protobuf maps the message: fields in lowerCamelCase or as they are in the .proto.
absl::StatusOr<planning::Model> ModelFromJson(std::string_view json, std::string_view path);

absl::StatusOr<planning::Model> DecodeModel(const v1::Model& message, std::string_view path);
// Without constants where `constants_file` says where they are, else with all of them.
// InvalidArgument for a number that its field cannot hold.
absl::StatusOr<v1::Model> EncodeModel(const planning::Model& model);

// Moves `constants` to the model's. InvalidArgument where the model has one of a name already.
absl::Status AddConstants(programs::Constants constants, planning::Model& model);

}  // namespace cipherd::codec
