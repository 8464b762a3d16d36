// An executable CUDA graph. Internal to core/runtime/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/capture.h"
#include "core/runtime/cuda/cuda_context.h"
#include "core/runtime/cuda/cuda_event.h"
#include "core/runtime/graph.h"

namespace cipherd::runtime::cuda {

using HostFunction = std::function<void()>;

class CudaGraph final : public Graph {
 public:
  // Instantiates `graph`, which stays the caller's, and uploads it on a stream of its own, so that
  // it does not queue behind anything. Blocks until that is done. `host_functions` are what its
  // host nodes call, `launch_events` what its launches record.
  static absl::StatusOr<std::unique_ptr<Graph>> Instantiate(
      CudaContext& context, cudaGraph_t graph, CapturedMemory memory,
      std::vector<std::unique_ptr<HostFunction>> host_functions,
      std::vector<std::shared_ptr<CudaEvent>> launch_events);
  ~CudaGraph() override;

  absl::Status Launch(Stream& stream) override;
  absl::Status CheckLiveness() const override { return memory_.CheckLiveness(); }
  size_t node_count() const override { return node_count_; }
  size_t pool_bytes() const override { return memory_.pool->bytes(); }
  void* native_handle() const override { return exec_; }

 private:
  explicit CudaGraph(CudaContext& context) : context_(context) {}

  CudaContext& context_;
  cudaGraphExec_t exec_ = nullptr;
  // Recorded after each launch. Launches do not overlap, so that the last one covers
  // all.
  cudaEvent_t last_launch_ = nullptr;
  size_t node_count_ = 0;
  CapturedMemory memory_;
  std::vector<std::unique_ptr<HostFunction>> host_functions_;
  std::vector<std::shared_ptr<CudaEvent>> launch_events_;
};

}  // namespace cipherd::runtime::cuda
