#include "client/load/load_run.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/load/load_generator.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(100);
constexpr size_t kReportedIntervals = 3;

class LevelRun {
 public:
  LevelRun(const Workload& workload, const LoadOptions& options, double level,
           const LoadObserver& observer)
      : options_(options), observer_(observer), level_(level) {
    report_.level = level;
    start_ = absl::Now();
    generator_ = LoadGenerator::Start(workload, options, level);
  }

  // Returns early when it is interrupted.
  LevelReport Run() {
    std::vector<LoadStatistics> intervals;
    while (static_cast<int>(intervals.size()) < options_.max_trials && !report_.is_stable) {
      const absl::Time begin = absl::Now();
      const bool is_complete = AwaitInterval(begin, intervals);
      std::vector<Sample> samples = generator_->TakeSamples();
      Count(samples);
      // What is left of an interval that was cut short says nothing, unless there is nothing else.
      if (!is_complete && !intervals.empty()) break;
      const absl::Duration duration = absl::Now() - begin;
      intervals.push_back(Summarize(samples, duration, percentile()));
      reported_.emplace_back(std::move(samples), duration);
      if (reported_.size() > kReportedIntervals) reported_.pop_front();
      report_.is_stable = IsStable(intervals, options_.stability_percentage);
      if (!is_complete) break;
    }
    report_.trial_count = static_cast<int>(intervals.size());
    Finish();
    return std::move(report_);
  }

 private:
  int percentile() const { return options_.percentile.value_or(0); }

  // False where it was interrupted.
  bool AwaitInterval(absl::Time begin, const std::vector<LoadStatistics>& intervals) {
    const absl::Time end = begin + options_.measurement_interval;
    for (absl::Time now = begin; now < end; now = absl::Now()) {
      if (observer_.is_interrupted && observer_.is_interrupted()) return false;
      if (observer_.on_progress) {
        observer_.on_progress(level_, static_cast<int>(intervals.size()) + 1,
                              intervals.empty() ? nullptr : &intervals.back());
      }
      absl::SleepFor(std::min(kProgressInterval, end - now));
    }
    return true;
  }

  void Count(const std::vector<Sample>& samples) {
    report_.ended_in_all += samples.size();
    report_.wrong_in_all += std::count_if(samples.begin(), samples.end(), [](const Sample& s) {
      return s.outcome == Outcome::kWrong;
    });
  }

  void Finish() {
    report_.sent_rate =
        static_cast<double>(generator_->sent_count()) / absl::ToDoubleSeconds(absl::Now() - start_);
    report_.backlog = generator_->in_flight();
    std::vector<Sample> samples;
    absl::Duration duration;
    for (const auto& [of_interval, interval_duration] : reported_) {
      samples.insert(samples.end(), of_interval.begin(), of_interval.end());
      duration += interval_duration;
    }
    report_.statistics = Summarize(samples, duration, percentile());
    generator_->Stop();
    Count(generator_->TakeSamples());
  }

  const LoadOptions& options_;
  const LoadObserver& observer_;
  const double level_;
  absl::Time start_;
  std::unique_ptr<LoadGenerator> generator_;
  // The last intervals, for the report.
  std::deque<std::pair<std::vector<Sample>, absl::Duration>> reported_;
  LevelReport report_;
};

}  // namespace

uint64_t LoadReport::wrong_count() const {
  uint64_t sum = 0;
  for (const LevelReport& level : levels) sum += level.wrong_in_all;
  return sum;
}

absl::StatusOr<LoadReport> RunLoad(const Workload& workload, const LoadOptions& options,
                                   const LoadObserver& observer) {
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  LoadReport report;
  report.options = options;
  report.server_version = workload.server_info().version();
  report.device = absl::StrCat(workload.server_info().device(), " (",
                               workload.server_info().device_name(), ")");
  for (int i = 0; i < workload.program_count(); ++i) {
    report.programs.push_back(workload.program_name(i));
  }
  report.tenant_count = workload.tenant_count();
  report.was_verified = workload.items().front().reference.has_value();
  for (const double level : options.levels.Levels()) {
    report.levels.push_back(LevelRun(workload, options, level, observer).Run());
    report.was_interrupted = observer.is_interrupted && observer.is_interrupted();
    const double threshold = absl::ToDoubleSeconds(options.latency_threshold);
    if (report.was_interrupted || report.levels.back().statistics.watched_latency > threshold) {
      break;
    }
  }
  return report;
}

}  // namespace cipherd::client
