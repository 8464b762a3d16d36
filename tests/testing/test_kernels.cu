#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/runtime/cuda/native_stream.h"
#include "tests/testing/test_kernels_cuda.h"

namespace cipherd::testing::cuda {
namespace {

constexpr unsigned kThreads = 256;

unsigned BlocksFor(size_t count) {
  return static_cast<unsigned>(std::clamp<size_t>((count + kThreads - 1) / kThreads, 1, 1024));
}

__global__ void AddWordsKernel(uint64_t* sums, const uint64_t* left, const uint64_t* right,
                               size_t count) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    sums[i] = left[i] + right[i];
  }
}

__global__ void AddConstantKernel(uint64_t* sums, const uint64_t* words, uint64_t addend,
                                  size_t count) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    sums[i] = words[i] + addend;
  }
}

}  // namespace

absl::Status AddWords(uint64_t* sums, const uint64_t* left, const uint64_t* right, size_t count,
                      runtime::Stream& stream) {
  AddWordsKernel<<<BlocksFor(count), kThreads, 0, runtime::cuda::NativeStream(stream)>>>(
      sums, left, right, count);
  return runtime::cuda::CheckLaunch(stream, "add words");
}

absl::Status AddConstant(uint64_t* sums, const uint64_t* words, uint64_t addend, size_t count,
                         runtime::Stream& stream) {
  AddConstantKernel<<<BlocksFor(count), kThreads, 0, runtime::cuda::NativeStream(stream)>>>(
      sums, words, addend, count);
  return runtime::cuda::CheckLaunch(stream, "add constant");
}

}  // namespace cipherd::testing::cuda
