#include "tests/testing/devices.h"

#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/runtime/cuda/cuda_device.h"
#include "core/runtime/host/puppet_device.h"
#include "core/runtime/host/stream_gate.h"
#include "core/runtime/host/task_stream.h"

namespace cipherd::testing {
namespace {

using runtime::Device;
using runtime::DeviceOptions;
using runtime::StoragePtr;
using runtime::Stream;
using runtime::host::HostStream;
using runtime::host::PuppetDevice;
using runtime::host::PuppetOptions;
using runtime::host::PuppetOrder;
using runtime::host::StreamGate;

absl::StatusOr<std::unique_ptr<Device>> OpenPuppet(PuppetOrder order,
                                                   const DeviceOptions& options) {
  PuppetOptions puppet_options;
  puppet_options.order = order;
  puppet_options.advances_on_query = true;
  return PuppetDevice::Open(puppet_options, options);
}

}  // namespace

std::vector<std::string> DevicesUnderTest() {
  std::vector<std::string> names{"cpu", "puppet", "puppet_eager"};
  if (runtime::CudaDeviceCount() > 0) names.push_back("cuda");
  return names;
}

std::string DeviceParamName(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

DeviceOptions SmallPools() {
  DeviceOptions options;
  for (runtime::PoolOptions* pool : {&options.device_memory, &options.pinned_memory}) {
    pool->slab_bytes = size_t{1} << 20;
    pool->budget_bytes = size_t{1} << 30;
  }
  return options;
}

absl::StatusOr<std::unique_ptr<Device>> OpenTestDevice(std::string_view param,
                                                       const DeviceOptions& options) {
  if (param == "puppet") return OpenPuppet(PuppetOrder::kLate, options);
  if (param == "puppet_eager") return OpenPuppet(PuppetOrder::kEager, options);
  return runtime::OpenDevice(param, options);
}

absl::StatusOr<StoragePtr> UploadBytes(std::span<const uint8_t> bytes, Device& device,
                                       Stream& stream) {
  CIPHERD_ASSIGN_OR_RETURN(StoragePtr storage, device.Allocate(bytes.size(), stream));
  CIPHERD_RETURN_IF_ERROR(stream.CopyAsync(storage->data(), bytes.data(), bytes.size()));
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  return storage;
}

absl::StatusOr<std::vector<uint8_t>> DownloadBytes(const void* source, size_t bytes,
                                                   Stream& stream) {
  std::vector<uint8_t> result(bytes);
  const absl::Status copied = stream.CopyAsync(result.data(), source, bytes);
  // Also where the copy was refused: nothing may write to `result` after it is gone.
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  CIPHERD_RETURN_IF_ERROR(copied);
  return result;
}

StreamHold HoldStream(Stream& stream) {
  if (auto* const host_stream = dynamic_cast<HostStream*>(&stream); host_stream != nullptr) {
    auto gate = std::make_shared<StreamGate>(*host_stream);
    return StreamHold([gate] { gate->Release(); });
  }
  auto released = std::make_shared<std::promise<void>>();
  std::shared_future<void> gate = released->get_future().share();
  const absl::Status status = stream.LaunchHost([gate] { gate.wait(); });
  EXPECT_TRUE(status.ok()) << status.ToString();
  return StreamHold([released] { released->set_value(); });
}

absl::Status FailStream(Stream& stream, const absl::Status& error) {
  if (auto* const tasks = dynamic_cast<runtime::host::TaskStream*>(&stream); tasks != nullptr) {
    return tasks->Submit("injected fault", [error] { return error; });
  }
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  runtime::cuda::FailStream(stream, error);
  return absl::OkStatus();
}

std::ostream& operator<<(std::ostream& out, const MemoryFigures& figures) {
  return out << "{device: " << figures.device_allocated_bytes
             << " bytes, pinned: " << figures.pinned_allocated_bytes << " bytes}";
}

absl::StatusOr<MemoryFigures> MemoryFiguresOf(Device& device) {
  CIPHERD_RETURN_IF_ERROR(device.Synchronize());
  MemoryFigures figures;
  figures.device_allocated_bytes = device.device_memory_stats().allocated_bytes;
  figures.pinned_allocated_bytes = device.pinned_memory_stats().allocated_bytes;
  return figures;
}

}  // namespace cipherd::testing
