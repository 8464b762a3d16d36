// How CUDA launchers put a kernel on a stream.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "core/kernels/kernel_table.h"
#include "core/ring/ring_tables.h"
#include "core/runtime/cuda/native_stream.h"
#include "core/runtime/stream.h"

namespace cipherd::kernels::cuda {

struct LaunchShape {
  dim3 grid;
  unsigned threads;
  size_t shared_bytes = 0;
};

// Launches `kernel` with copies of `arguments`. The stream's error where it has failed; Internal
// where CUDA refuses the launch.
template <class... Parameters, class... Arguments>
absl::Status Launch(const char* name, runtime::Stream& stream, const LaunchShape& shape,
                    void (*kernel)(Parameters...), Arguments&&... arguments) {
  CIPHERD_RETURN_IF_ERROR(stream.status());
  const cudaStream_t native = runtime::cuda::NativeStream(stream);
  kernel<<<shape.grid, shape.threads, shape.shared_bytes, native>>>(
      std::forward<Arguments>(arguments)...);
  return runtime::cuda::CheckLaunch(stream, name);
}

// Launch of a kernel that begins with WaitForPrecedingWork: its blocks may be on the device before
// the launch in front of it has ended (programmatic dependent launch), so that what a launch costs
// and what the kernel reads of constants overlap with that one's end.
template <class... Parameters, class... Arguments>
absl::Status LaunchEarly(const char* name, runtime::Stream& stream, const LaunchShape& shape,
                         void (*kernel)(Parameters...), Arguments&&... arguments) {
  CIPHERD_RETURN_IF_ERROR(stream.status());
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = runtime::cuda::NativeStream(stream);
  config.attrs = &early;
  config.numAttrs = 1;
  // The error is looked at below, as after any launch.
  (void)cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  return runtime::cuda::CheckLaunch(stream, name);
}

// To be called by every thread before it touches memory that other launches write or read; tables
// of a ring may be read before. Then lets the next launch come.
__device__ inline void WaitForPrecedingWork() {
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
}

// Lets launches of `kernel` have `bytes` of dynamic shared memory, beyond the 48 KiB that need no
// leave.
template <class... Parameters>
absl::Status AllowSharedBytes(const char* name, runtime::Stream& stream,
                              void (*kernel)(Parameters...), size_t bytes) {
  CIPHERD_RETURN_IF_ERROR(stream.status());
  // Makes the stream's GPU current.
  runtime::cuda::NativeStream(stream);
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bytes)) != cudaSuccess) {
    return runtime::cuda::CheckLaunch(stream, name);
  }
  return absl::OkStatus();
}

// Entry i of one limb of one polynomial.
struct EntryPlace {
  int64_t outer;
  int limb;
  uint32_t i;
};

// Runs op(ring, prime, place) for every entry of `limbs` of grid.z polynomials, one thread each.
template <class Op>
__global__ void __launch_bounds__(256)
    EntryKernel(const __grid_constant__ ring::RingTables ring,
                const __grid_constant__ LimbPrimes limbs, const __grid_constant__ Op op) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= uint32_t{1} << ring.log_n) return;
  const EntryPlace place = {static_cast<int64_t>(blockIdx.z), static_cast<int>(blockIdx.y), i};
  op(ring, ring.primes[limbs.prime[place.limb]], place);
}

template <class Op>
absl::Status LaunchEntries(const char* name, const ring::RingTables& ring, const LimbPrimes& limbs,
                           int64_t outer_count, const Op& op, runtime::Stream& stream) {
  const unsigned n = 1u << ring.log_n;
  const unsigned threads = n < 256 ? n : 256;
  const LaunchShape shape = {
      dim3(n / threads, static_cast<unsigned>(limbs.count), static_cast<unsigned>(outer_count)),
      threads};
  return Launch(name, stream, shape, EntryKernel<Op>, ring, limbs, op);
}

}  // namespace cipherd::kernels::cuda
