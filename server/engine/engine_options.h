// What an engine is made with: workers, budgets, quotas, and how programs are served by default.
//
//   EngineOptions options;
//   options.workers = 2;
//   options.keys.directory = "/var/lib/cipherd/keys";
//   CIPHERD_RETURN_IF_ERROR(options.Validate());
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/engine/serving_settings.h"
#include "server/engine/tenant_quotas.h"
#include "server/engine/worker.h"

namespace cipherd::engine {

// key_store.h and key_residency.h say what each bounds.
struct KeyOptions {
  // Of all key sets in pinned host memory, and of those resident on each device.
  int64_t host_budget_bytes = int64_t{8} << 30;
  int64_t device_budget_bytes = int64_t{4} << 30;
  // Of one tenant's sets in all tiers.
  int64_t tenant_budget_bytes = int64_t{1} << 62;
  // Keeps key sets across restarts; empty: they live in memory.
  std::string directory;
  // Other daemons have it, too.
  bool is_directory_shared = false;
  int64_t file_budget_bytes = int64_t{1} << 40;
  // About how fast keys are copied to a device. With several devices it decides what a second copy
  // is worth (placement.h): no matter for one. PCIe 4 carries 25e9, PCIe 5 twice that.
  double load_bytes_per_second = 20e9;
  absl::Duration time_to_live = absl::InfiniteDuration();

  // The largest set that every tier and quota admits.
  int64_t max_set_bytes() const;
};

struct EngineOptions {
  // On each device.
  int workers = 1;
  // How programs are served that do not say otherwise (serving_settings.h).
  int instances = 3;
  int queue_capacity = 32;
  int warmup = 1;
  int64_t constant_memory_bytes = INT64_MAX;
  KeyOptions keys;
  // Absent: polled with CUDA, notified on the CPU device.
  std::optional<CompletionMode> completion;
  // So long a worker's threads spin before they sleep, where completion is polled (worker.h).
  // Absent: 5 ms where there are four processors a worker or more, which keeps those of a busy
  // worker awake, else 200 µs.
  std::optional<absl::Duration> spin;
  // Between attempts to rebuild a worker after a fault.
  absl::Duration rebuild_pause = absl::Seconds(1);
  TenantQuotaOptions quotas;

  // InvalidArgument naming the field.
  absl::Status Validate() const;

  ServingSettings DefaultServing() const;
  absl::Duration WorkerSpin(int device_count = 1) const;
};

}  // namespace cipherd::engine
