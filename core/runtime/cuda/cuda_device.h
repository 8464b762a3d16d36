// Opens a GPU. Includes no header of CUDA; without CUDA in the build, no_cuda.cc stands in.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/runtime/device.h"

namespace cipherd::runtime::cuda {

// NotFound, naming how many GPUs there are, for one that is missing; Unimplemented where this build
// has no CUDA; InvalidArgument for the options; Internal where the GPU cannot be used.
absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int ordinal, const DeviceOptions& options);

// Makes `stream` (of a CUDA device) and its device fail with `error` from now on, as a fault found
// outside the runtime would. `error` must not be OK.
void FailStream(Stream& stream, const absl::Status& error);

}  // namespace cipherd::runtime::cuda
