// A measured load: level after level, each until its figures are stable.
//
//   ASSIGN_OR_RETURN(LoadReport report, RunLoad(*workload, options, observer));
//
// Blocks; used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/load/load_options.h"
#include "client/load/load_statistics.h"
#include "client/load/workload.h"

namespace cipherd::client {

struct LevelReport {
  // Clients, or requests a second that were due.
  double level = 0;
  // Of the last three intervals together.
  LoadStatistics statistics;
  // Requests that were sent a second, over the whole level.
  double sent_rate = 0;
  // Under way when the last interval ended: in an open loop, what the daemon could not keep up
  // with.
  int backlog = 0;
  int trial_count = 0;
  bool is_stable = false;
  // Over the whole level, requests that ended after its last interval included.
  uint64_t ended_in_all = 0;
  uint64_t wrong_in_all = 0;
};

struct LoadReport {
  LoadOptions options;
  std::string server_version;
  std::string device;
  std::vector<std::string> programs;
  int tenant_count = 0;
  bool was_verified = false;
  std::vector<LevelReport> levels;
  bool was_interrupted = false;

  uint64_t wrong_count() const;
};

struct LoadObserver {
  // About ten times a second, with the figures of the last complete interval (null before that).
  // May be null.
  std::function<void(double level, int trial, const LoadStatistics* last)> on_progress;
  // Whether to end early. May be null.
  std::function<bool()> is_interrupted;
};

// InvalidArgument for options that are none.
absl::StatusOr<LoadReport> RunLoad(const Workload& workload, const LoadOptions& options,
                                   const LoadObserver& observer);

}  // namespace cipherd::client
