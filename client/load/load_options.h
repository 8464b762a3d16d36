// What `cipherctl load` is asked to do, in the words of perf_analyzer.
//
//   ASSIGN_OR_RETURN(LevelRange levels, LevelRange::Parse("1:64:8"));
//   LoadOptions options = {.mode = LoadMode::kConcurrency, .levels = levels};
//   RETURN_IF_ERROR(options.Validate());
//
// Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace cipherd::client {

// start, start + step, … up to end, both included.
struct LevelRange {
  double start = 1;
  double end = 1;
  double step = 1;

  // "start[:end[:step]]"; the end is the start where it is missing, the step is 1. InvalidArgument
  // for anything else.
  static absl::StatusOr<LevelRange> Parse(std::string_view text);

  std::vector<double> Levels() const;
  // InvalidArgument unless 0 < start ≤ end, 0 < step, and there are at most 1000 levels.
  absl::Status Validate() const;
};

enum class LoadMode : uint8_t {
  // Closed loop: as many clients as the level says, each sends its next request when it has the
  // answer to the last.
  kConcurrency,
  // Open loop: requests are due at times that do not depend on answers, as many a second as the
  // level says. Latency counts from the time at which a request was due: a daemon that stalls does
  // not hide that by holding up the requests that would have seen it.
  kRequestRate,
};

// Times between requests of an open loop: all the same, or exponentially distributed, as those of
// many independent clients are.
enum class ArrivalDistribution : uint8_t { kConstant, kPoisson };

struct LoadOptions {
  LoadMode mode = LoadMode::kConcurrency;
  LevelRange levels;
  ArrivalDistribution distribution = ArrivalDistribution::kConstant;

  // A level is measured in intervals of this length, until three in a row agree in throughput and
  // latency within the percentage, or there were max_trials.
  absl::Duration measurement_interval = absl::Seconds(5);
  double stability_percentage = 10;
  int max_trials = 10;
  // The latency that must be stable; none is the mean.
  std::optional<int> percentile;
  // Levels after one whose latency is above are not measured.
  absl::Duration latency_threshold = absl::InfiniteDuration();

  // Of each request, from when it is sent.
  absl::Duration deadline = absl::Minutes(1);
  // In [0, 1]: requests that are cancelled at a random moment within about their time.
  double cancel_share = 0;
  // What a closed-loop client waits after a failure, unless the daemon says how long; twice as long
  // after each further one in a row, up to a second. Clients that come back at once would measure
  // how fast they are refused.
  absl::Duration retry_delay = absl::Milliseconds(20);
  // Requests of an open loop under way at once; those due beyond are sent late, and counted so.
  int max_in_flight = 1024;

  uint64_t seed = 1;

  // InvalidArgument naming the flag.
  absl::Status Validate() const;
};

}  // namespace cipherd::client
