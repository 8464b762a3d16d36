// A CUDA stream. Internal to core/runtime/cuda; kernels see it through native_stream.h.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/capture.h"
#include "core/runtime/cuda/cuda_context.h"
#include "core/runtime/cuda/cuda_event.h"
#include "core/runtime/cuda/cuda_graph.h"
#include "core/runtime/cuda/cuda_progress.h"
#include "core/runtime/stream.h"

namespace cipherd::runtime::cuda {

class CudaStream;

// The streams and host functions of a capture; CUDA itself records the nodes.
class CudaCapture final : public Capture {
 public:
  using Capture::Capture;

  // By member; null for a stream that was destroyed.
  std::vector<CudaStream*> streams;
  std::vector<std::unique_ptr<HostFunction>> host_functions;
  // That launches of the graph will record.
  std::vector<std::shared_ptr<CudaEvent>> launch_events;
};

class CudaStream final : public Stream {
 public:
  static absl::StatusOr<std::unique_ptr<Stream>> Create(CudaContext& context,
                                                        std::string_view name);
  ~CudaStream() override;

  Device& device() const override { return context_.device(); }
  const std::string& name() const override { return name_; }
  std::shared_ptr<StreamProgress> progress() const override { return progress_; }

  absl::Status CopyAsync(void* destination, const void* source, size_t bytes) override;
  absl::Status FillAsync(void* destination, uint8_t value, size_t bytes) override;
  absl::Status Record(Event& event) override;
  absl::Status RecordInLaunches(std::shared_ptr<Event> event) override;
  absl::Status Wait(const Event& event) override;
  absl::Status LaunchHost(std::function<void()> function) override;
  absl::StatusOr<bool> Query() override;
  absl::Status Synchronize() override;
  // A fault of CUDA is a fault of the device, so that all its streams fail together.
  absl::Status status() const override { return context_.health().status(); }
  absl::Status BeginCapture(bool check_liveness) override;
  absl::StatusOr<std::unique_ptr<Graph>> EndCapture() override;
  bool is_capturing() const override { return capture_ != nullptr; }
  absl::Status DeclareAccess(std::span<const MemoryAccess> accesses) override;

  // For launches of kernels: inside a capture, a forked stream must be joined again after this.
  void AddCapturedWork();
  // The status of a call on this stream. What fails inside a capture invalidates that, and leaves
  // the device alone; elsewhere the device has failed.
  absl::Status CheckCall(cudaError_t result, std::string_view call);
  // FailedPrecondition, and the capture is invalidated, inside one.
  absl::Status RefuseLaunchInCapture();

  CudaContext& context() const { return context_; }
  cudaStream_t native() const { return stream_; }
  const std::shared_ptr<CudaCapture>& capture() const { return capture_; }

 private:
  // An eager host function. CUDA's thread runs it, but must not destroy it: what it owns may call
  // CUDA.
  struct HostCall {
    HostFunction function;
    std::atomic<bool> is_done{false};
  };

  CudaStream(CudaContext& context, std::string_view name, cudaStream_t stream);

  // Whether `address` is in pinned memory of this device.
  bool IsPinned(const void* address) const;
  absl::Status WaitOnCaptured(const CudaEvent& event, const CudaEvent::CapturedRecord& record);
  // Ends CUDA's side of the capture. Every stream leaves it, whether it has rejoined or not.
  cudaError_t EndNativeCapture(cudaGraph_t* graph);

  CudaContext& context_;
  const std::string name_;
  const cudaStream_t stream_;
  const std::shared_ptr<CudaProgress> progress_;
  std::shared_ptr<CudaCapture> capture_;
  size_t member_ = 0;
  std::list<HostCall> host_calls_;
};

}  // namespace cipherd::runtime::cuda
