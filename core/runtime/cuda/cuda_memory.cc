#include "core/runtime/cuda/cuda_memory.h"

#include "core/runtime/cuda/cuda_context.h"

namespace cipherd::runtime::cuda {
namespace {

absl::StatusOr<void*> Result(cudaError_t result, void* slab, std::string_view call) {
  if (result == cudaSuccess) return slab;
  // Having no memory is no fault of the device. Any other error sticks in the device by itself and
  // is met by the next call.
  cudaGetLastError();
  return absl::ResourceExhaustedError(Describe(result, call));
}

}  // namespace

absl::StatusOr<void*> DeviceSlabSource::Allocate(size_t bytes) {
  const ScopedDevice device(ordinal_);
  const ScopedRelaxedCapture relaxed;
  void* slab = nullptr;
  const cudaError_t result = cudaMalloc(&slab, bytes);
  return Result(result, slab, "cudaMalloc");
}

void DeviceSlabSource::Free(void* slab, size_t bytes) {
  const ScopedDevice device(ordinal_);
  const ScopedRelaxedCapture relaxed;
  CheckCleanup(cudaFree(slab), "cudaFree");
}

absl::StatusOr<void*> PinnedSlabSource::Allocate(size_t bytes) {
  const ScopedDevice device(ordinal_);
  const ScopedRelaxedCapture relaxed;
  void* slab = nullptr;
  const cudaError_t result = cudaHostAlloc(&slab, bytes, cudaHostAllocPortable);
  return Result(result, slab, "cudaHostAlloc");
}

void PinnedSlabSource::Free(void* slab, size_t bytes) {
  const ScopedDevice device(ordinal_);
  const ScopedRelaxedCapture relaxed;
  CheckCleanup(cudaFreeHost(slab), "cudaFreeHost");
}

}  // namespace cipherd::runtime::cuda
