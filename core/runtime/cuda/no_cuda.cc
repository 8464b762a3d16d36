// The stand-in for core/runtime/cuda where the build has no CUDA.
#include "absl/strings/str_cat.h"
#include "core/runtime/cuda/cuda_device.h"

namespace cipherd::runtime {

int CudaDeviceCount() { return 0; }

namespace cuda {

absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int ordinal, const DeviceOptions& options) {
  return absl::UnimplementedError(
      absl::StrCat("device cuda:", ordinal, ": this build has no CUDA (CIPHERD_CUDA)"));
}

// No stream of a CUDA device exists.
void FailStream(Stream& stream, const absl::Status& error) {}

}  // namespace cuda
}  // namespace cipherd::runtime
