// Flags and config file to ServerOptions.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/logging.h"
#include "server/options.h"
#include "server/probe.h"

namespace cipherd::server {

struct CommandLine {
  ServerOptions options;
  // Set where the process is to ask a daemon's health instead of being one.
  std::optional<ProbeOptions> probe;
  std::string log_level = "info";
  LogFormat log_format = LogFormat::kLogfmt;
};

// Parses the flags, and the file that --config names (lines of flag = value; flags win). Prints the
// text of --help and --version itself and then gives Cancelled with code 0 in `exit_code`;
// InvalidArgument, after printing what is wrong, with the code to exit with.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv, int& exit_code);

}  // namespace cipherd::server
