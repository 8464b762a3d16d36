// A device: memory pools, streams, events.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenDevice("auto", {}));
//   ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device->CreateStream("compute"));
//   ASSIGN_OR_RETURN(StoragePtr block, device->Allocate(1 << 20, *stream));
//
// A device owns its pools and outlives everything created from it. Thread-safe. The promises of
// every implementation are listed in SEMANTICS.md, and each is a test in tests/conformance.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/runtime/device_id.h"
#include "core/runtime/event.h"
#include "core/runtime/memory.h"
#include "core/runtime/stream.h"

namespace cipherd::runtime {

struct PoolOptions {
  // Size of one slab, a multiple of 256; a larger block gets a slab of its own. At most 1 GiB.
  size_t slab_bytes = size_t{64} << 20;
  // No more than this is ever reserved. At most 2^62.
  size_t budget_bytes = size_t{64} << 30;
  // Reserved when the device is opened.
  size_t initial_bytes = 0;

  absl::Status Validate() const;
};

struct DeviceOptions {
  PoolOptions device_memory;
  PoolOptions pinned_memory;

  absl::Status Validate() const;
};

struct DeviceProperties {
  // "AMD EPYC", "NVIDIA H200".
  std::string name;
  size_t total_memory_bytes = 0;
  // CUDA compute capability times ten (90 on an H200); 0 on the CPU device.
  int compute_capability = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceId id() const = 0;
  virtual const DeviceProperties& properties() const = 0;

  // `name` appears in errors and profiles.
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream(std::string_view name) = 0;
  virtual absl::StatusOr<std::shared_ptr<Event>> CreateEvent() = 0;

  // Device memory for work on `stream` (memory.h gives the rule of its reuse), uninitialised. While
  // `stream` captures, the block comes from the pool of the capture. ResourceExhausted, naming
  // asked and available bytes, beyond the budget.
  virtual absl::StatusOr<StoragePtr> Allocate(size_t bytes, Stream& stream) = 0;

  // Page-locked host memory that this device copies to and from at full speed, uninitialised.
  virtual absl::StatusOr<StoragePtr> AllocatePinned(size_t bytes) = 0;

  virtual MemoryStats device_memory_stats() const = 0;
  virtual MemoryStats pinned_memory_stats() const = 0;

  // Returns empty slabs of both pools to the system.
  virtual void TrimMemory() = 0;

  // The first failure of any work on this device, or OK. After one, the device must be rebuilt.
  virtual absl::Status health() const = 0;

  // Blocks until all streams are idle. For tests only: nothing on a serving path may call it.
  virtual absl::Status Synchronize() = 0;
};

// "auto" (CUDA where a driver and a GPU are found, else the CPU), "cpu", "cpu:N", "cuda", "cuda:N".
// InvalidArgument for other text; NotFound, naming how many GPUs there are, for one that is
// missing; Unimplemented where this build has no CUDA.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(std::string_view spec,
                                                   const DeviceOptions& options);

// Number of CUDA devices that this process can use; 0 without driver, GPU or CUDA build.
int CudaDeviceCount();

}  // namespace cipherd::runtime
