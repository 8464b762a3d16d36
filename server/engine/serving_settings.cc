#include "server/engine/serving_settings.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"

namespace cipherd::engine {
namespace {

absl::Status CheckAtLeast(std::string_view field, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("serving.", std::string(field), ": expected at least ", least, ", got ", value));
}

absl::Status CheckPositive(std::string_view field, absl::Duration value) {
  if (value > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("serving.", std::string(field),
                                                 ": expected a positive duration, got ",
                                                 absl::FormatDuration(value)));
}

}  // namespace

absl::Status ServingSettings::Validate() const {
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("instances", instances, 1));
  bool is_lawful = !batch_sizes.empty() && batch_sizes.front() == 1;
  for (size_t i = 1; i < batch_sizes.size(); ++i) {
    is_lawful = is_lawful && batch_sizes[i] > batch_sizes[i - 1];
  }
  if (!is_lawful || batch_sizes.back() > kMaxBatchSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("serving.batch_sizes: expected ascending sizes from 1 to at most ",
                     kMaxBatchSize, ", got [", absl::StrJoin(batch_sizes, ", "), "]"));
  }
  if (max_batch_delay < absl::ZeroDuration() || max_batch_delay > absl::Seconds(10)) {
    return absl::InvalidArgumentError(
        absl::StrCat("serving.max_batch_delay: expected 0 to 10 s, got ",
                     absl::FormatDuration(max_batch_delay)));
  }
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("queue_capacity", queue_capacity, 1));
  CIPHERD_RETURN_IF_ERROR(CheckPositive("default_timeout", default_timeout));
  CIPHERD_RETURN_IF_ERROR(CheckPositive("longest_timeout", longest_timeout));
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("constant_memory_bytes", constant_memory_bytes, 1));
  return CheckAtLeast("warmup", warmup, 0);
}

}  // namespace cipherd::engine
