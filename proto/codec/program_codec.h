// Programs between their text form (program.textproto), the wire and core/programs.
//
//   ProgramCatalog catalog(directory, codec::ParseProgramText);
//
// Parsing checks the form: syntax (the message gives path:line:column), known fields, one kind for
// each operation, numbers that fit. What a program means is for core/programs/program_checker.h to
// check; so contexts are not validated here. Errors are InvalidArgument. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/evaluation.pb.h"
#include "cipherd/v1/program.pb.h"
#include "core/ckks/evaluation_keys.h"
#include "core/programs/program_spec.h"

namespace cipherd::codec {

// `path` names the file in messages; nothing is read from it.
absl::StatusOr<programs::ProgramSpec> ParseProgramText(std::string_view text,
                                                       std::string_view path);
// Text that ParseProgramText reads back as an equal spec.
absl::StatusOr<std::string> PrintProgramText(const programs::ProgramSpec& spec);

absl::StatusOr<programs::ProgramSpec> DecodeProgram(const v1::Program& message,
                                                    std::string_view path);
absl::StatusOr<v1::Program> EncodeProgram(const programs::ProgramSpec& spec);

// Parts of GetProgramResponse. Encoding is InvalidArgument for a number that its field cannot hold.
absl::Status EncodeProgramInput(const programs::ProgramInput& input, std::string_view path,
                                v1::ProgramInput* out);
absl::Status EncodeProgramOutput(const programs::ProgramOutput& output, std::string_view path,
                                 v1::ProgramOutput* out);
absl::StatusOr<programs::ProgramInput> DecodeProgramInput(const v1::ProgramInput& message,
                                                          std::string_view path);
absl::StatusOr<programs::ProgramOutput> DecodeProgramOutput(const v1::ProgramOutput& message,
                                                            std::string_view path);

// Names of keys, as in GetProgramResponse.required_keys.
void EncodeKeyId(const ckks::KeyId& id, v1::KeyId* out);
absl::StatusOr<ckks::KeyId> DecodeKeyId(const v1::KeyId& message, std::string_view path);

}  // namespace cipherd::codec
