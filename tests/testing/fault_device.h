// A device that fails when a test says so, and is otherwise the device that it wraps.
//
//   ASSERT_OK_AND_ASSIGN(auto inner, OpenTestDevice(GetParam()));
//   FaultDevice device(std::move(inner));
//   device.FailNth(FaultPoint::kCopy, 2, absl::InternalError("injected"));   // the copy after next
//
// A call that fails has no effect, as if the driver had refused it; the one exception is
// EndCapture, which first ends the capture and drops its graph. Each fault happens once. Everything
// made by the device (streams, events, graphs, storage) belongs to it and must be used with it;
// what only the wrapped one can do (StreamHold, kernels for CUDA) goes through Unwrap. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/runtime/device.h"

namespace cipherd::testing {

// A kind of call that can fail.
enum class FaultPoint {
  kCreateStream,
  kCreateEvent,
  kAllocate,
  kAllocatePinned,
  kCopy,
  kFill,
  kSubmit,  // closures of host devices: their kernels
  kLaunchHost,
  kRecord,
  kWait,
  kSynchronize,  // of streams and events
  kBeginCapture,
  kEndCapture,
  kGraphLaunch,
  kCount,
};
std::string_view ToString(FaultPoint point);

class FaultDevice final : public runtime::Device {
 public:
  explicit FaultDevice(std::unique_ptr<runtime::Device> inner);

  // The n-th call of `point` from now on (1: the next one) fails with `error`.
  void FailNth(FaultPoint point, int n, absl::Status error);
  // The device itself fails with `error`, now and for good, as CUDA's does after any: health() says
  // so, and every call fails.
  void Fail(absl::Status error) {
    absl::MutexLock lock(&mu_);
    failure_ = std::move(error);
  }
  // Runs `interrupt` before every call of `point` from now on, on the thread of the call: holds it,
  // where `interrupt` blocks.
  void InterruptCalls(FaultPoint point, std::function<void()> interrupt) {
    absl::MutexLock lock(&mu_);
    interrupts_[static_cast<size_t>(point)] = std::move(interrupt);
  }
  // Forgets the faults that have not happened.
  void ClearFaults();
  // Calls of `point` so far, failed ones included.
  int call_count(FaultPoint point) const;

  // The stream of the wrapped device behind `stream`; `stream` itself where it is no wrapper.
  static runtime::Stream& Unwrap(runtime::Stream& stream);

  runtime::DeviceId id() const override { return inner_->id(); }
  const runtime::DeviceProperties& properties() const override { return inner_->properties(); }
  absl::StatusOr<std::unique_ptr<runtime::Stream>> CreateStream(std::string_view name) override;
  absl::StatusOr<std::shared_ptr<runtime::Event>> CreateEvent() override;
  absl::StatusOr<runtime::StoragePtr> Allocate(size_t bytes, runtime::Stream& stream) override;
  absl::StatusOr<runtime::StoragePtr> AllocatePinned(size_t bytes) override;
  runtime::MemoryStats device_memory_stats() const override;
  runtime::MemoryStats pinned_memory_stats() const override;
  void TrimMemory() override { inner_->TrimMemory(); }
  absl::Status health() const override;
  absl::Status Synchronize() override { return inner_->Synchronize(); }

  // Counts a call, and returns the fault that is due at it, or OK. For the wrappers.
  absl::Status Count(FaultPoint point);

 private:
  static constexpr size_t kPointCount = static_cast<size_t>(FaultPoint::kCount);

  const std::unique_ptr<runtime::Device> inner_;
  mutable absl::Mutex mu_;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::array<int, kPointCount> call_counts_ ABSL_GUARDED_BY(mu_) = {};
  std::array<std::function<void()>, kPointCount> interrupts_ ABSL_GUARDED_BY(mu_);
  // By the number of the call.
  std::array<std::map<int, absl::Status>, kPointCount> faults_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::testing
