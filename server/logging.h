// Where the daemon's log goes, and what may speak in it.
#pragma once

#include <string>

namespace cipherd::server {

// One line a record on standard error, from `level` on (a name of spdlog's: "info", "error", …).
// Libraries whose messages clients could provoke at will, as protobuf's on text that is not UTF-8,
// are heard at level "debug" only. Called once, before any thread starts.
void SetUpLogging(const std::string& level);

}  // namespace cipherd::server
