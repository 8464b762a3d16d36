#include "core/runtime/host/host_device.h"

#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/runtime/host/host_memory.h"
#include "core/runtime/host/host_stream.h"
#include "core/runtime/host/thread_executor.h"

namespace cipherd::runtime::host {
namespace {

// "AMD EPYC 9654", from the kernel's list of processors.
std::string ProcessorName() {
  std::ifstream list("/proc/cpuinfo");
  for (std::string line; std::getline(list, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "CPU";
}

DeviceProperties CpuProperties() {
  DeviceProperties properties;
  properties.name = ProcessorName();
  properties.total_memory_bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return properties;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> HostDevice::OpenCpu(const DeviceOptions& options,
                                                            int ordinal) {
  std::unique_ptr<HostDevice> device(
      new HostDevice(CpuProperties(), std::make_unique<ThreadExecutor>(), ordinal));
  CIPHERD_RETURN_IF_ERROR(device->OpenPools(options));
  return device;
}

HostDevice::HostDevice(DeviceProperties properties, std::unique_ptr<Executor> executor, int ordinal)
    : ordinal_(ordinal),
      properties_(std::move(properties)),
      executor_(std::move(executor)),
      health_(std::make_shared<DeviceHealth>()) {}

absl::Status HostDevice::OpenPools(const DeviceOptions& options) {
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  const std::string name = id().ToString();
  CIPHERD_ASSIGN_OR_RETURN(
      pools_.device, SlabPool::Create(absl::StrCat("device memory of ", name), MemorySpace::kDevice,
                                      this, options.device_memory,
                                      std::make_unique<HostSlabSource>(/*is_locked=*/false)));
  CIPHERD_ASSIGN_OR_RETURN(
      pools_.pinned, SlabPool::Create(absl::StrCat("pinned memory of ", name), MemorySpace::kPinned,
                                      this, options.pinned_memory,
                                      std::make_unique<HostSlabSource>(/*is_locked=*/true)));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Stream>> HostDevice::CreateStream(std::string_view name) {
  auto queue = std::make_shared<TaskQueue>(name, health_);
  executor_->Add(queue);
  {
    std::lock_guard lock(mu_);
    std::erase_if(queues_, [](const auto& entry) { return entry.expired(); });
    queues_.push_back(queue);
  }
  return std::make_unique<HostStream>(*this, std::move(queue));
}

absl::StatusOr<std::shared_ptr<Event>> HostDevice::CreateEvent() {
  return std::make_shared<HostEvent>(*this);
}

absl::StatusOr<StoragePtr> HostDevice::Allocate(size_t bytes, Stream& stream) {
  auto* const host_stream = dynamic_cast<HostStream*>(&stream);
  if (host_stream == nullptr || &stream.device() != this) {
    return absl::InvalidArgumentError("Device::Allocate: the stream is of another device");
  }
  const std::shared_ptr<HostCapture>& capture = host_stream->capture();
  CIPHERD_RETURN_IF_ERROR(CheckAllocate(capture.get()));
  return pools_.device->Allocate(bytes, stream.progress(),
                                 capture == nullptr ? nullptr : capture->pool());
}

absl::StatusOr<StoragePtr> HostDevice::AllocatePinned(size_t bytes) {
  CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing("Device::AllocatePinned"));
  return pools_.pinned->Allocate(bytes, /*owner=*/nullptr);
}

absl::Status HostDevice::Synchronize() {
  CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing("Device::Synchronize"));
  std::vector<std::shared_ptr<TaskQueue>> queues;
  {
    std::lock_guard lock(mu_);
    for (const auto& entry : queues_) {
      if (auto queue = entry.lock()) queues.push_back(std::move(queue));
    }
  }
  for (const auto& queue : queues) executor_->Await({queue, queue->Mark()});
  return health();
}

}  // namespace cipherd::runtime::host
