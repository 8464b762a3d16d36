// The text form of a program's serving settings (serving.textproto).
//
// Parsing checks the form: syntax (the message gives path:line:column), known fields, numbers that
// fit. What is sensible is for the engine to say. InvalidArgument. Thread-safe.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "core/programs/serving_spec.h"

namespace cipherd::codec {

// `path` names the file in messages; nothing is read from it.
absl::StatusOr<programs::ServingSpec> ParseServingText(std::string_view text,
                                                       std::string_view path);

}  // namespace cipherd::codec
