#include "core/runtime/cuda/cuda_device.h"

#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/runtime/cuda/cuda_context.h"
#include "core/runtime/cuda/cuda_event.h"
#include "core/runtime/cuda/cuda_memory.h"
#include "core/runtime/cuda/cuda_stream.h"

namespace cipherd::runtime {
namespace cuda {
namespace {

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, DeviceProperties properties)
      : properties_(std::move(properties)), context_(*this, ordinal) {}

  absl::Status OpenPools(const DeviceOptions& options) {
    const int ordinal = context_.ordinal();
    const std::string name = id().ToString();
    MemoryPools pools;
    CIPHERD_ASSIGN_OR_RETURN(
        pools.device,
        SlabPool::Create(absl::StrCat("device memory of ", name), MemorySpace::kDevice, this,
                         options.device_memory, std::make_unique<DeviceSlabSource>(ordinal)));
    CIPHERD_ASSIGN_OR_RETURN(
        pools.pinned,
        SlabPool::Create(absl::StrCat("pinned memory of ", name), MemorySpace::kPinned, this,
                         options.pinned_memory, std::make_unique<PinnedSlabSource>(ordinal)));
    context_.set_pools(std::move(pools));
    return absl::OkStatus();
  }

  DeviceId id() const override { return {DeviceId::Kind::kCuda, context_.ordinal()}; }
  const DeviceProperties& properties() const override { return properties_; }

  absl::StatusOr<std::unique_ptr<Stream>> CreateStream(std::string_view name) override {
    return CudaStream::Create(context_, name);
  }

  absl::StatusOr<std::shared_ptr<Event>> CreateEvent() override {
    return CudaEvent::Create(context_);
  }

  absl::StatusOr<StoragePtr> Allocate(size_t bytes, Stream& stream) override {
    auto* const cuda_stream = dynamic_cast<CudaStream*>(&stream);
    if (cuda_stream == nullptr || &stream.device() != this) {
      return absl::InvalidArgumentError("Device::Allocate: the stream is of another device");
    }
    CudaCapture* const capture = cuda_stream->capture().get();
    CIPHERD_RETURN_IF_ERROR(CheckAllocate(capture));
    return context_.pools().device->Allocate(bytes, stream.progress(),
                                             capture == nullptr ? nullptr : capture->pool());
  }

  absl::StatusOr<StoragePtr> AllocatePinned(size_t bytes) override {
    CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing("Device::AllocatePinned"));
    return context_.pools().pinned->Allocate(bytes, /*owner=*/nullptr);
  }

  MemoryStats device_memory_stats() const override { return context_.pools().device->stats(); }
  MemoryStats pinned_memory_stats() const override { return context_.pools().pinned->stats(); }
  void TrimMemory() override { context_.pools().Trim(); }
  absl::Status health() const override { return context_.health().status(); }

  absl::Status Synchronize() override {
    CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing("Device::Synchronize"));
    const ScopedDevice device(context_.ordinal());
    CIPHERD_RETURN_IF_ERROR(
        context_.Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", "Device::Synchronize"));
    return health();
  }

 private:
  const DeviceProperties properties_;
  CudaContext context_;
};

absl::StatusOr<DeviceProperties> ReadProperties(int ordinal) {
  cudaDeviceProp native;
  if (cudaError_t error = cudaGetDeviceProperties(&native, ordinal); error != cudaSuccess) {
    cudaGetLastError();
    return absl::InternalError(
        absl::StrCat("device cuda:", ordinal, ": ", Describe(error, "cudaGetDeviceProperties")));
  }
  DeviceProperties properties;
  properties.name = native.name;
  properties.total_memory_bytes = native.totalGlobalMem;
  properties.compute_capability = native.major * 10 + native.minor;
  return properties;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int ordinal, const DeviceOptions& options) {
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  int count = 0;
  if (cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    cudaGetLastError();
    return absl::NotFoundError(absl::StrCat(
        "device cuda:", ordinal,
        ": this process can use no GPU: ", Describe(error, "cudaGetDeviceCount"),
        error == cudaErrorInsufficientDriver
            ? "; the driver's libcuda.so.1 is not there, too old, or links what is not there"
            : ""));
  }
  if (ordinal >= count) {
    return absl::NotFoundError(absl::StrCat("device cuda:", ordinal, ": this process can use ",
                                            count, count == 1 ? " GPU" : " GPUs"));
  }
  CIPHERD_ASSIGN_OR_RETURN(DeviceProperties properties, ReadProperties(ordinal));
  auto device = std::make_unique<CudaDevice>(ordinal, std::move(properties));
  CIPHERD_RETURN_IF_ERROR(device->OpenPools(options));
  return device;
}

}  // namespace cuda

int CudaDeviceCount() {
  int count = 0;
  // Without a driver or a GPU this is an error, and means none.
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

}  // namespace cipherd::runtime
