// A load report as tables for people and as JSON for programs.
#pragma once

#include <string>

#include "client/load/load_run.h"

namespace cipherd::client {

// Latency and throughput by level; the daemon's stages; causes of failures; programs, where there
// are several. Times in milliseconds.
std::string FormatLoadReport(const LoadReport& report);

// The same and everything that was asked for, times in seconds. The key "schema" is
// "cipherd.load.v1"; what is added later has new names.
std::string LoadReportToJson(const LoadReport& report);

// "64 clients", "120 requests/s": one line while a load runs.
std::string FormatLoadProgress(LoadMode mode, double level, int trial, const LoadStatistics* last);

}  // namespace cipherd::client
