#include "server/engine/engine_options.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/base/processor_count.h"
#include "core/base/status_macros.h"

namespace cipherd::engine {
namespace {

absl::Status CheckAtLeast(std::string_view field, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("engine.", std::string(field), ": expected at least ", least, ", got ", value));
}

}  // namespace

absl::Status EngineOptions::Validate() const {
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("workers", workers, 1));
  CIPHERD_RETURN_IF_ERROR(DefaultServing().Validate());
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("keys.host_budget_bytes", keys.host_budget_bytes, 1));
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("keys.device_budget_bytes", keys.device_budget_bytes, 1));
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("keys.tenant_budget_bytes", keys.tenant_budget_bytes, 1));
  CIPHERD_RETURN_IF_ERROR(CheckAtLeast("keys.file_budget_bytes", keys.file_budget_bytes, 1));
  if (spin.has_value() && *spin < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("engine.spin: expected a time of at least 0");
  }
  if (!(keys.load_bytes_per_second > 0)) {
    return absl::InvalidArgumentError("engine.keys.load_bytes_per_second: expected more than 0");
  }
  if (keys.time_to_live <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("engine.keys.time_to_live: expected a positive time");
  }
  if (keys.is_directory_shared && keys.directory.empty()) {
    return absl::InvalidArgumentError("engine.keys.is_directory_shared: expected a directory");
  }
  return quotas.Validate();
}

int64_t KeyOptions::max_set_bytes() const {
  const int64_t memory_bytes =
      std::min({host_budget_bytes, device_budget_bytes, tenant_budget_bytes});
  return directory.empty() ? memory_bytes : std::min(memory_bytes, file_budget_bytes);
}

ServingSettings EngineOptions::DefaultServing() const {
  ServingSettings settings;
  settings.instances = instances;
  settings.queue_capacity = queue_capacity;
  settings.warmup = warmup;
  settings.constant_memory_bytes = constant_memory_bytes;
  return settings;
}

absl::Duration EngineOptions::WorkerSpin(int device_count) const {
  constexpr int kProcessorsPerSpinningWorker = 4;
  if (spin.has_value()) return *spin;
  const int processors = kProcessorsPerSpinningWorker * workers * device_count;
  return base::ProcessorCount() >= processors ? absl::Milliseconds(5) : absl::Microseconds(200);
}

}  // namespace cipherd::engine
