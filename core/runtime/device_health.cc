#include "core/runtime/device_health.h"

#include <atomic>

#include "spdlog/spdlog.h"

namespace cipherd::runtime {
namespace {

std::atomic<uint64_t> cleanup_failure_count{0};

}  // namespace

void DeviceHealth::Report(const absl::Status& failure) {
  std::lock_guard lock(mu_);
  if (first_failure_.ok()) first_failure_ = failure;
}

absl::Status DeviceHealth::status() const {
  std::lock_guard lock(mu_);
  return first_failure_;
}

void LogCleanupFailure(std::string_view call, std::string_view cause) {
  ++cleanup_failure_count;
  spdlog::error("clean-up failed: {}: {}", call, cause);
}

uint64_t CleanupFailureCount() { return cleanup_failure_count; }

}  // namespace cipherd::runtime
