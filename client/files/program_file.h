// What the daemon said of a program, on disk: encrypting and decrypting then need no connection.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/evaluation.pb.h"
#include "client/program_description.h"

namespace cipherd::client {

// `requested_version` is that of the description (program_description.h).
absl::Status WriteProgramFile(const std::string& path, const v1::GetProgramResponse& program,
                              uint32_t requested_version = 0);

// A program and what the daemon said of it.
struct StoredProgram {
  ProgramPtr program;
  v1::GetProgramResponse message;
};

// Errors of ProgramDescription::FromMessage too.
absl::StatusOr<StoredProgram> ReadStoredProgram(const std::string& path,
                                                ckks::SecurityPolicy policy);
absl::StatusOr<ProgramPtr> ReadProgramFile(const std::string& path, ckks::SecurityPolicy policy);

}  // namespace cipherd::client
