// A CUDA event, and whether it was last recorded in a capture. Internal to core/runtime/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/runtime/capture.h"
#include "core/runtime/cuda/cuda_context.h"
#include "core/runtime/event.h"

namespace cipherd::runtime::cuda {

class CudaCapture;

class CudaEvent final : public Event {
 public:
  struct NeverRecorded {};
  struct EagerRecord {};
  struct CapturedRecord {
    std::weak_ptr<CudaCapture> capture;
    CaptureClock clock;
  };
  using Latest = std::variant<NeverRecorded, EagerRecord, CapturedRecord>;

  static absl::StatusOr<std::shared_ptr<Event>> Create(CudaContext& context);
  ~CudaEvent() override;

  Device& device() const override { return context_.device(); }
  absl::StatusOr<bool> Query() const override;
  absl::Status Synchronize() const override;
  absl::StatusOr<double> SecondsSince(const Event& start) const override;

  // Records on `stream`; `latest` says where that is, and stands only where CUDA accepts it.
  cudaError_t RecordOn(cudaStream_t stream, Latest latest);
  // Makes the graph that `stream` captures record this, and says that a launch of it has.
  cudaError_t RecordInLaunches(cudaStream_t stream);
  void set_launched();
  // Lets `stream` wait for the latest record.
  cudaError_t WaitOn(cudaStream_t stream) const;
  Latest latest() const;

 private:
  CudaEvent(CudaContext& context, cudaEvent_t event) : context_(context), event_(event) {}

  // Whether it was recorded outside captures; FailedPrecondition where this thread captures or the
  // latest record belongs to a capture.
  absl::StatusOr<bool> WasRecorded(std::string_view call) const;

  CudaContext& context_;
  const cudaEvent_t event_;
  // Held while CUDA records and waits, so that latest_ describes what CUDA knows.
  mutable std::mutex mu_;
  Latest latest_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::runtime::cuda
