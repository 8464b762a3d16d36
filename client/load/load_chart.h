// Latency and throughput against load as a picture, drawn by gnuplot.
//
//   RETURN_IF_ERROR(CheckCanDraw("load.svg"));       // before the load: it takes long
//   RETURN_IF_ERROR(DrawLoadChart(report, "load.svg"));
//
// gnuplot is a program that need not be there: FailedPrecondition says what to install. The format
// goes by the extension, .svg or .png; InvalidArgument for others.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/load/load_run.h"

namespace cipherd::client {

absl::Status CheckCanDraw(const std::string& path);

// Appears under its name whole. Internal with gnuplot's message where it fails.
absl::Status DrawLoadChart(const LoadReport& report, const std::string& path);

// The part that gnuplot reads.
absl::StatusOr<std::string> LoadChartScript(const LoadReport& report, const std::string& path);

}  // namespace cipherd::client
