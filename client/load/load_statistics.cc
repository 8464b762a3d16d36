#include "client/load/load_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cipherd::client {
namespace {

constexpr size_t kStableIntervals = 3;

bool AllWithin(std::span<const LoadStatistics> intervals, double percentage,
               double (*figure)(const LoadStatistics&)) {
  double sum = 0;
  for (const LoadStatistics& interval : intervals) sum += figure(interval);
  const double mean = sum / static_cast<double>(intervals.size());
  return std::all_of(intervals.begin(), intervals.end(), [&](const LoadStatistics& interval) {
    return std::abs(figure(interval) - mean) <= mean * percentage / 100;
  });
}

}  // namespace

double Percentile(std::span<const double> sorted, double percent) {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[std::clamp<size_t>(static_cast<size_t>(rank), 1, sorted.size()) - 1];
}

LatencySummary SummarizeLatencies(std::vector<double>& latencies) {
  if (latencies.empty()) return {};
  std::sort(latencies.begin(), latencies.end());
  LatencySummary summary;
  summary.count = latencies.size();
  summary.mean = std::accumulate(latencies.begin(), latencies.end(), 0.0) /
                 static_cast<double>(latencies.size());
  summary.p50 = Percentile(latencies, 50);
  summary.p90 = Percentile(latencies, 90);
  summary.p95 = Percentile(latencies, 95);
  summary.p99 = Percentile(latencies, 99);
  summary.max = latencies.back();
  return summary;
}

uint64_t LoadStatistics::failed() const {
  uint64_t sum = 0;
  for (const auto& [cause, count] : failures) sum += count;
  return sum;
}

LoadStatistics Summarize(std::span<const Sample> samples, absl::Duration duration, int percentile) {
  LoadStatistics statistics;
  statistics.duration = duration;
  std::vector<double> latencies;
  std::map<int, std::vector<double>> latencies_by_program;
  for (const Sample& sample : samples) {
    statistics.late += sample.lag > kLateAfter;
    switch (sample.outcome) {
      case Outcome::kCancelled:
        ++statistics.cancelled;
        continue;
      case Outcome::kWrong:
        ++statistics.wrong;
        continue;
      case Outcome::kFailed:
        ++statistics.failures[{sample.code, sample.reason}];
        continue;
      case Outcome::kSucceeded:
        break;
    }
    ++statistics.succeeded;
    statistics.sent_bytes += sample.sent_bytes;
    statistics.received_bytes += sample.received_bytes;
    latencies.push_back(absl::ToDoubleSeconds(sample.latency));
    latencies_by_program[sample.program].push_back(latencies.back());
    for (size_t i = 0; i < kStageCount; ++i) {
      statistics.stage_seconds[i] += sample.stage_seconds[i];
    }
  }
  for (double& seconds : statistics.stage_seconds) {
    seconds /= std::max<double>(1, static_cast<double>(statistics.succeeded));
  }
  statistics.throughput =
      static_cast<double>(statistics.succeeded) / absl::ToDoubleSeconds(duration);
  statistics.latency = SummarizeLatencies(latencies);
  statistics.watched_latency =
      percentile == 0 ? statistics.latency.mean : Percentile(latencies, percentile);
  for (auto& [program, of_program] : latencies_by_program) {
    statistics.latency_by_program[program] = SummarizeLatencies(of_program);
  }
  return statistics;
}

bool IsStable(std::span<const LoadStatistics> intervals, double percentage) {
  if (intervals.size() < kStableIntervals) return false;
  const auto last = intervals.last(kStableIntervals);
  const bool each_has_successes = std::all_of(
      last.begin(), last.end(), [](const LoadStatistics& i) { return i.succeeded > 0; });
  return each_has_successes &&
         AllWithin(last, percentage, [](const LoadStatistics& i) { return i.throughput; }) &&
         AllWithin(last, percentage, [](const LoadStatistics& i) { return i.watched_latency; });
}

}  // namespace cipherd::client
