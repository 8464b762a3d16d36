#include "client/load/load_options.h"

#include <cmath>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

constexpr double kMaxLevels = 1000;

absl::Status Invalid(const std::string& flag, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", what));
}

}  // namespace

absl::StatusOr<LevelRange> LevelRange::Parse(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ':');
  LevelRange range;
  double* const numbers[] = {&range.start, &range.end, &range.step};
  bool is_valid = parts.size() <= std::size(numbers);
  for (size_t i = 0; is_valid && i < parts.size(); ++i) {
    is_valid = absl::SimpleAtod(parts[i], numbers[i]);
  }
  if (!is_valid) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected start[:end[:step]], got '", std::string(text), "'"));
  }
  if (parts.size() == 1) range.end = range.start;
  CIPHERD_RETURN_IF_ERROR(range.Validate());
  return range;
}

absl::Status LevelRange::Validate() const {
  // Comparisons with a NaN are false.
  if (start > 0 && end >= start && step > 0 && std::isfinite(end) &&
      (end - start) / step < kMaxLevels) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("range ", start, ":", end, ":", step,
                                                 ": expected 0 < start <= end, a positive step, "
                                                 "and at most 1000 levels"));
}

std::vector<double> LevelRange::Levels() const {
  // A rounding error of the quotient must not cost the last level.
  const int count = static_cast<int>(std::floor((end - start) / step + 1e-9)) + 1;
  std::vector<double> levels;
  for (int i = 0; i < count; ++i) levels.push_back(start + i * step);
  return levels;
}

absl::Status LoadOptions::Validate() const {
  CIPHERD_RETURN_IF_ERROR(levels.Validate());
  if (mode == LoadMode::kConcurrency) {
    for (const double level : levels.Levels()) {
      if (level != std::floor(level)) return Invalid("concurrency-range", "expected whole numbers");
    }
  }
  if (measurement_interval <= absl::ZeroDuration()) {
    return Invalid("measurement-interval", "expected a positive time");
  }
  if (!(stability_percentage > 0)) return Invalid("stability-percentage", "expected more than 0");
  if (max_trials < 1) return Invalid("max-trials", "expected at least 1");
  if (percentile.has_value() && (*percentile < 1 || *percentile > 99)) {
    return Invalid("percentile", "expected 1 to 99");
  }
  if (latency_threshold <= absl::ZeroDuration()) {
    return Invalid("latency-threshold", "expected a positive time");
  }
  if (deadline <= absl::ZeroDuration()) return Invalid("deadline", "expected a positive time");
  if (!(cancel_share >= 0 && cancel_share <= 1)) return Invalid("cancel-share", "expected 0 to 1");
  if (retry_delay < absl::ZeroDuration())
    return Invalid("retry-delay", "expected no negative time");
  if (max_in_flight < 1) return Invalid("max-in-flight", "expected at least 1");
  return absl::OkStatus();
}

}  // namespace cipherd::client
