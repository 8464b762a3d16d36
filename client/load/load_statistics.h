// What samples add up to.
//
//   LoadStatistics statistics = Summarize(samples, absl::Seconds(5));
//   statistics.throughput, statistics.latency.p99
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/load/sample.h"

namespace cipherd::client {

// A request that was sent later than this after it was due counts as late.
inline constexpr absl::Duration kLateAfter = absl::Milliseconds(1);

// The smallest element that at least `percent` % of `sorted` do not exceed; 0 where it is empty.
// Requires ascending order and 0 < percent ≤ 100.
double Percentile(std::span<const double> sorted, double percent);

// In seconds.
struct LatencySummary {
  uint64_t count = 0;
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};
// Reorders `latencies`.
LatencySummary SummarizeLatencies(std::vector<double>& latencies);

struct LoadStatistics {
  absl::Duration duration;
  // Successes a second, and what they moved.
  double throughput = 0;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;

  uint64_t succeeded = 0;
  uint64_t cancelled = 0;
  uint64_t wrong = 0;
  std::map<std::pair<absl::StatusCode, v1::ErrorReason>, uint64_t> failures;
  // Whatever their end.
  uint64_t late = 0;

  // Of successes, over all programs and of each.
  LatencySummary latency;
  std::map<int, LatencySummary> latency_by_program;
  // Of the percentile that stability looks at.
  double watched_latency = 0;
  // Means of successes, in the order of kStages.
  std::array<double, kStageCount> stage_seconds = {};

  uint64_t failed() const;
  uint64_t ended() const { return succeeded + cancelled + wrong + failed(); }
};

// `percentile`: what watched_latency is; 0 for the mean.
LoadStatistics Summarize(std::span<const Sample> samples, absl::Duration duration, int percentile);

// Whether the last three intervals agree: throughput and watched latency of each within
// `percentage` of their mean. False for fewer, and where one had no success.
bool IsStable(std::span<const LoadStatistics> intervals, double percentage);

}  // namespace cipherd::client
