// Writes a program as the directory that a daemon serves (core/programs/catalog.h).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/programs/program_checker.h"

namespace cipherd::client {

// Writes program.textproto and the constants' file into `directory`, which appears whole or not at
// all: it is put together in a directory beside it whose name begins with a dot, which daemons
// leave alone, and renamed. AlreadyExists where there is something of that name; its last part is
// the program's name or its version, else InvalidArgument, since a daemon would refuse it.
absl::Status WriteProgramDirectory(const std::string& directory,
                                   const programs::CheckedProgram& program);

}  // namespace cipherd::client
