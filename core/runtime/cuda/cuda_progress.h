// How far a CUDA stream has come, by events recorded at each Mark. Internal to core/runtime/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/runtime/stream_progress.h"

namespace cipherd::runtime::cuda {

class CudaProgress final : public StreamProgress {
 public:
  CudaProgress(int ordinal, cudaStream_t stream) : ordinal_(ordinal), stream_(stream) {}
  ~CudaProgress() override { Close(); }

  uint64_t Mark() override;
  bool HasPassed(uint64_t position) override;

  // Called before the stream takes part in a capture, and after. In between, an event recorded on
  // the stream would become part of the capture, and nothing is enqueued that runs: Mark then
  // returns the position of BeginCapture.
  void BeginCapture();
  void EndCapture();

  // The stream is about to be destroyed. Waits for what was marked; from then on everything has
  // passed.
  void Close();

 private:
  struct Marker {
    uint64_t position;
    cudaEvent_t event;
  };

  uint64_t RecordMarker() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CollectPassed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int ordinal_;

  std::mutex mu_;
  // Null once closed.
  cudaStream_t stream_ ABSL_GUARDED_BY(mu_);
  bool is_capturing_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t capture_position_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t marked_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t passed_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<Marker> markers_ ABSL_GUARDED_BY(mu_);
  std::vector<cudaEvent_t> spare_events_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::runtime::cuda
