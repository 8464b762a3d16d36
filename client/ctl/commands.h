// The commands of cipherctl: each adds its flags to the parser, and runs when it was chosen.
//
// A command's outcome goes to `status`, its result to standard output, progress and advice to
// standard error. `status` must outlive the parsing.
#pragma once

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace cipherd::client {

// What the daemon is and whether its programs are ready.
void AddStatusCommand(CLI::App& app, absl::Status& status);
// The daemon's programs, or one of them in full.
void AddProgramsCommand(CLI::App& app, absl::Status& status);
// Makes the keys of a program in a directory.
void AddKeygenCommand(CLI::App& app, absl::Status& status);
// Uploads the evaluation keys of a directory, and deletes them from the daemon.
void AddPutKeysCommand(CLI::App& app, absl::Status& status);
void AddDropKeysCommand(CLI::App& app, absl::Status& status);
// Vectors to a file of ciphertexts, such a file to its result, a result to vectors.
void AddEncryptCommand(CLI::App& app, absl::Status& status);
void AddEvaluateCommand(CLI::App& app, absl::Status& status);
void AddDecryptCommand(CLI::App& app, absl::Status& status);
// Ciphertexts as arrays for clients of the Open Inference Protocol, and what they got as a file.
void AddExportTensorsCommand(CLI::App& app, absl::Status& status);
void AddImportTensorsCommand(CLI::App& app, absl::Status& status);
// What a program directory's operations are and take; needs no daemon.
void AddExplainCommand(CLI::App& app, absl::Status& status);
// Makes a program of a model; needs no daemon.
void AddPlanCommand(CLI::App& app, absl::Status& status);
// Puts a load on the daemon and measures it.
void AddLoadCommand(CLI::App& app, absl::Status& status);

}  // namespace cipherd::client
