// The kernels of test_kernels.h for streams of CUDA devices. Without CUDA in the build,
// test_kernels_no_cuda.cc stands in, and answers Unimplemented.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "core/runtime/stream.h"

namespace cipherd::testing::cuda {

absl::Status AddWords(uint64_t* sums, const uint64_t* left, const uint64_t* right, size_t count,
                      runtime::Stream& stream);
absl::Status AddConstant(uint64_t* sums, const uint64_t* words, uint64_t addend, size_t count,
                         runtime::Stream& stream);

}  // namespace cipherd::testing::cuda
