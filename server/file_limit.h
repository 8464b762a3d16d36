// How many files the process may have open, and what that leaves for connections.
#pragma once

#include "server/connection_table.h"

namespace cipherd::server {

// Raises the process' own limit of open files towards what these connections and everything else
// need, as far as the system lets it, and gives as many connections as there are files for. Fewer
// than were asked for are logged.
ConnectionLimits WithinFileLimit(const ConnectionLimits& wanted);

// The same for a limit that is known: a part of it is kept for programs, keys, logs and metrics.
ConnectionLimits WithinFileLimit(const ConnectionLimits& wanted, uint64_t max_files);

}  // namespace cipherd::server
