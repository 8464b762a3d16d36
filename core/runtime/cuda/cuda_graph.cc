#include "core/runtime/cuda/cuda_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/runtime/cuda/cuda_stream.h"

namespace cipherd::runtime::cuda {
namespace {

absl::Status InstantiationError(cudaError_t error, std::string_view call) {
  cudaGetLastError();
  const std::string message = absl::StrCat("Stream::EndCapture: ", Describe(error, call));
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

// Kernels, copies, fills and host functions; not the empty nodes that joins leave.
absl::StatusOr<size_t> CountWork(cudaGraph_t graph) {
  size_t count = 0;
  if (cudaError_t error = cudaGraphGetNodes(graph, nullptr, &count); error != cudaSuccess) {
    return InstantiationError(error, "cudaGraphGetNodes");
  }
  std::vector<cudaGraphNode_t> nodes(count);
  if (cudaError_t error = cudaGraphGetNodes(graph, nodes.data(), &count); error != cudaSuccess) {
    return InstantiationError(error, "cudaGraphGetNodes");
  }
  size_t work_count = 0;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    if (cudaError_t error = cudaGraphNodeGetType(node, &type); error != cudaSuccess) {
      return InstantiationError(error, "cudaGraphNodeGetType");
    }
    const bool is_work = type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy ||
                         type == cudaGraphNodeTypeMemset || type == cudaGraphNodeTypeHost;
    if (is_work) ++work_count;
  }
  return work_count;
}

absl::Status Upload(cudaGraphExec_t exec) {
  cudaStream_t stream = nullptr;
  if (cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      error != cudaSuccess) {
    return InstantiationError(error, "cudaStreamCreateWithFlags");
  }
  cudaError_t error = cudaGraphUpload(exec, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  CheckCleanup(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return error == cudaSuccess ? absl::OkStatus() : InstantiationError(error, "cudaGraphUpload");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> CudaGraph::Instantiate(
    CudaContext& context, cudaGraph_t graph, CapturedMemory memory,
    std::vector<std::unique_ptr<HostFunction>> host_functions,
    std::vector<std::shared_ptr<CudaEvent>> launch_events) {
  std::unique_ptr<CudaGraph> result(new CudaGraph(context));
  result->memory_ = std::move(memory);
  result->host_functions_ = std::move(host_functions);
  result->launch_events_ = std::move(launch_events);
  CIPHERD_ASSIGN_OR_RETURN(result->node_count_, CountWork(graph));
  if (cudaError_t error = cudaEventCreateWithFlags(&result->last_launch_, cudaEventDisableTiming);
      error != cudaSuccess) {
    return InstantiationError(error, "cudaEventCreate");
  }
  if (cudaError_t error = cudaGraphInstantiate(&result->exec_, graph, 0); error != cudaSuccess) {
    return InstantiationError(error, "cudaGraphInstantiate");
  }
  CIPHERD_RETURN_IF_ERROR(Upload(result->exec_));
  return result;
}

CudaGraph::~CudaGraph() {
  const ScopedDevice device(context_.ordinal());
  // The thread that lets go of a graph may be capturing another one.
  const ScopedRelaxedCapture relaxed;
  if (last_launch_ != nullptr) {
    CheckCleanup(cudaEventSynchronize(last_launch_), "cudaEventSynchronize");
    CheckCleanup(cudaEventDestroy(last_launch_), "cudaEventDestroy");
  }
  if (exec_ != nullptr) CheckCleanup(cudaGraphExecDestroy(exec_), "cudaGraphExecDestroy");
}

absl::Status CudaGraph::Launch(Stream& stream) {
  auto* const cuda_stream = dynamic_cast<CudaStream*>(&stream);
  if (cuda_stream == nullptr || &stream.device() != &context_.device()) {
    return absl::InvalidArgumentError("Graph::Launch: the stream is of another device");
  }
  CIPHERD_RETURN_IF_ERROR(stream.status());
  CIPHERD_RETURN_IF_ERROR(cuda_stream->RefuseLaunchInCapture());
  const ScopedDevice device(context_.ordinal());
  CIPHERD_RETURN_IF_ERROR(context_.Check(cudaGraphLaunch(exec_, cuda_stream->native()),
                                         "cudaGraphLaunch", stream.name()));
  for (const std::shared_ptr<CudaEvent>& event : launch_events_) event->set_launched();
  return context_.Check(cudaEventRecord(last_launch_, cuda_stream->native()), "cudaEventRecord",
                        stream.name());
}

}  // namespace cipherd::runtime::cuda
