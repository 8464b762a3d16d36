// Slabs of GPU memory and of page-locked host memory. Internal to core/runtime/cuda.
#pragma once

#include "core/runtime/slab_source.h"

namespace cipherd::runtime::cuda {

// cudaMalloc and cudaFree. Free waits for the whole device, as CUDA defines it; the pool calls it
// only to trim and before it refuses.
class DeviceSlabSource final : public SlabSource {
 public:
  explicit DeviceSlabSource(int ordinal) : ordinal_(ordinal) {}
  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* slab, size_t bytes) override;

 private:
  const int ordinal_;
};

// cudaHostAlloc, usable by every GPU.
class PinnedSlabSource final : public SlabSource {
 public:
  explicit PinnedSlabSource(int ordinal) : ordinal_(ordinal) {}
  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* slab, size_t bytes) override;

 private:
  const int ordinal_;
};

}  // namespace cipherd::runtime::cuda
