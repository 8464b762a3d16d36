// The first failure of a device, and failures of clean-up that nobody could be told.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"

namespace cipherd::runtime {

// Thread-safe.
class DeviceHealth {
 public:
  // Keeps `failure` unless an earlier one is kept.
  void Report(const absl::Status& failure);
  absl::Status status() const;

 private:
  mutable std::mutex mu_;
  absl::Status first_failure_ ABSL_GUARDED_BY(mu_);
};

// For destructors: logs that `call` failed with `cause`, and counts it.
void LogCleanupFailure(std::string_view call, std::string_view cause);

// How many were logged by this process, for its metrics.
uint64_t CleanupFailureCount();

}  // namespace cipherd::runtime
