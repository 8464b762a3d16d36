// A device whose work the host runs: the CPU device, with ThreadExecutor, and the puppet.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/runtime/device.h"
#include "core/runtime/device_health.h"
#include "core/runtime/host/executor.h"
#include "core/runtime/memory_pools.h"

namespace cipherd::runtime::host {

class HostDevice : public Device {
 public:
  // CPU device number `ordinal`: each has pools and streams of its own, and all share the host's
  // processor. InvalidArgument for the options; ResourceExhausted where initial slabs cannot be
  // had.
  static absl::StatusOr<std::unique_ptr<Device>> OpenCpu(const DeviceOptions& options,
                                                         int ordinal = 0);

  DeviceId id() const override { return {DeviceId::Kind::kCpu, ordinal_}; }
  const DeviceProperties& properties() const override { return properties_; }
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(std::string_view name) override;
  absl::StatusOr<std::shared_ptr<Event>> CreateEvent() override;
  absl::StatusOr<StoragePtr> Allocate(size_t bytes, Stream& stream) override;
  absl::StatusOr<StoragePtr> AllocatePinned(size_t bytes) override;
  MemoryStats device_memory_stats() const override { return pools_.device->stats(); }
  MemoryStats pinned_memory_stats() const override { return pools_.pinned->stats(); }
  void TrimMemory() override { pools_.Trim(); }
  absl::Status health() const override { return health_->status(); }
  absl::Status Synchronize() override;

  // For the streams, events and graphs of this device.
  Executor& executor() { return *executor_; }
  const MemoryPools& pools() const { return pools_; }
  const std::shared_ptr<DeviceHealth>& shared_health() const { return health_; }

 protected:
  HostDevice(DeviceProperties properties, std::unique_ptr<Executor> executor, int ordinal = 0);

  // Second half of construction.
  absl::Status OpenPools(const DeviceOptions& options);

 private:
  const int ordinal_;
  const DeviceProperties properties_;
  const std::unique_ptr<Executor> executor_;
  const std::shared_ptr<DeviceHealth> health_;
  MemoryPools pools_;

  std::mutex mu_;
  // Of all streams that were created; those of destroyed streams expire.
  std::vector<std::weak_ptr<TaskQueue>> queues_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::runtime::host
