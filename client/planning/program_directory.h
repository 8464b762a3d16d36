// Writes a program as the directory that a daemon serves (core/programs/catalog.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/programs/program_checker.h"

namespace cipherd::client {

// Whether `directory` may be written: before a program that takes long to make. Its last part is
// the program's name or its version, else InvalidArgument, since a daemon would refuse it;
// AlreadyExists where there is something of that name.
absl::Status CheckProgramDirectory(const std::string& directory, std::string_view program,
                                   int64_t version);

// Writes program.textproto and the constants' file into `directory`, which appears whole or not at
// all: it is put together in a directory beside it whose name begins with a dot, which daemons
// leave alone, and renamed. What CheckProgramDirectory says.
absl::Status WriteProgramDirectory(const std::string& directory,
                                   const programs::CheckedProgram& program);

}  // namespace cipherd::client
