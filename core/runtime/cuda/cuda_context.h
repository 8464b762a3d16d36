// What the parts of one CUDA device share: its number, its pools, its health, and how a cudaError_t
// becomes a status. Internal to core/runtime/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/runtime/device.h"
#include "core/runtime/device_health.h"
#include "core/runtime/memory_pools.h"

namespace cipherd::runtime::cuda {

// Makes a GPU current on this thread. A scope inside another one gives the other's GPU back at its
// end; the outermost leaves its own current: whoever comes next has a scope as well, a thread that
// serves one GPU never switches, and no GPU gets a context that has no work.
class ScopedDevice {
 public:
  explicit ScopedDevice(int ordinal);
  ~ScopedDevice();
  ScopedDevice(const ScopedDevice&) = delete;
  ScopedDevice& operator=(const ScopedDevice&) = delete;

 private:
  int previous_;
  bool is_changed_ = false;
  const bool is_nested_;
};

// Lets this thread make calls that a capture in progress would forbid, though they do not touch it:
// growing a pool, asking for events that were recorded outside it.
class ScopedRelaxedCapture {
 public:
  ScopedRelaxedCapture();
  ~ScopedRelaxedCapture();
  ScopedRelaxedCapture(const ScopedRelaxedCapture&) = delete;
  ScopedRelaxedCapture& operator=(const ScopedRelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// "cudaMemcpyAsync: an illegal memory access was encountered (cudaErrorIllegalAddress)".
std::string Describe(cudaError_t error, std::string_view call);

// For destructors: logs and counts unless `result` is success, and clears the thread's last error.
void CheckCleanup(cudaError_t result, std::string_view call);

// Events that nobody holds any more, for the next who asks: making and destroying one costs more
// than recording it, and a replay takes two. Recording an event anew is all it takes to reuse it:
// waits that are pending keep the record that they saw. Thread-safe.
class SpareEvents {
 public:
  explicit SpareEvents(int ordinal) : ordinal_(ordinal) {}
  ~SpareEvents();
  SpareEvents(const SpareEvents&) = delete;
  SpareEvents& operator=(const SpareEvents&) = delete;

  // Null where there is none.
  cudaEvent_t Take();
  // False where there are enough already.
  bool Give(cudaEvent_t event);

 private:
  static constexpr size_t kMaxCount = 256;

  const int ordinal_;
  std::mutex mu_;
  std::vector<cudaEvent_t> events_ ABSL_GUARDED_BY(mu_);
};

// Thread-safe. Lives as long as its device, which everything that holds a pointer to it outlives
// not.
class CudaContext {
 public:
  CudaContext(Device& device, int ordinal)
      : device_(device), ordinal_(ordinal), spare_events_(ordinal) {}

  // OK for success. Otherwise the device has failed: Internal, naming device, `where` and `call`,
  // which sticks. Clears the thread's last error.
  absl::Status Check(cudaError_t result, std::string_view call, std::string_view where);

  Device& device() const { return device_; }
  int ordinal() const { return ordinal_; }
  DeviceHealth& health() { return health_; }
  const DeviceHealth& health() const { return health_; }
  const MemoryPools& pools() const { return pools_; }
  SpareEvents& spare_events() { return spare_events_; }
  void set_pools(MemoryPools pools) { pools_ = std::move(pools); }

 private:
  Device& device_;
  const int ordinal_;
  DeviceHealth health_;
  MemoryPools pools_;
  SpareEvents spare_events_;
};

}  // namespace cipherd::runtime::cuda
