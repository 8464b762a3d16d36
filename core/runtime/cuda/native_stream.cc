#include "core/runtime/cuda/native_stream.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/runtime/cuda/cuda_device.h"
#include "core/runtime/cuda/cuda_stream.h"
#include "spdlog/spdlog.h"

namespace cipherd::runtime::cuda {
namespace {

CudaStream& CudaStreamOf(Stream& stream) {
  auto* const cuda_stream = dynamic_cast<CudaStream*>(&stream);
  if (cuda_stream == nullptr) {
    spdlog::critical("stream '{}' of {} given to a CUDA kernel", stream.name(),
                     stream.device().id().ToString());
    std::abort();
  }
  return *cuda_stream;
}

}  // namespace

cudaStream_t NativeStream(Stream& stream) {
  CudaStream& cuda_stream = CudaStreamOf(stream);
  cuda_stream.AddCapturedWork();
  // An error here comes back from the launch itself.
  cudaSetDevice(cuda_stream.context().ordinal());
  return cuda_stream.native();
}

absl::Status CheckLaunch(Stream& stream, std::string_view kernel) {
  CudaStream& cuda_stream = CudaStreamOf(stream);
  const cudaError_t result = cudaGetLastError();
  if (result == cudaSuccess) return stream.status();
  return cuda_stream.CheckCall(result, absl::StrCat("kernel ", std::string(kernel)));
}

void FailStream(Stream& stream, const absl::Status& error) {
  CudaStreamOf(stream).context().health().Report(error);
}

}  // namespace cipherd::runtime::cuda
