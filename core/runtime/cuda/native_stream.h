// What the launchers of CUDA kernels need from a stream; the only door to CUDA's handles.
//
//   add_kernel<<<grid, block, 0, cuda::NativeStream(stream)>>>(...);
//   return cuda::CheckLaunch(stream, "add");
//
// Compiles with nvcc. The caller declares the memory that the kernel touches
// (Stream::DeclareAccess) before it launches.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "absl/status/status.h"
#include "core/runtime/stream.h"

namespace cipherd::runtime::cuda {

// The handle of `stream`, which must be of a CUDA device (anything else ends the process). Makes
// its GPU current on the calling thread, as a launch needs, and tells a capture that work follows.
// Call it anew for every launch.
cudaStream_t NativeStream(Stream& stream);

// After a launch on `stream`: OK, or the stream's sticky error; a launch that CUDA refused fails
// the device, or in a capture invalidates that. Internal, naming the kernel.
absl::Status CheckLaunch(Stream& stream, std::string_view kernel);

}  // namespace cipherd::runtime::cuda
