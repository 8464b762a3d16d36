#include "tests/testing/test_kernels.h"

#include "core/base/status_macros.h"
#include "core/runtime/host/task_stream.h"
#include "tests/testing/fault_device.h"
#include "tests/testing/test_kernels_cuda.h"

namespace cipherd::testing {

using runtime::Stream;
using runtime::host::TaskStream;

absl::Status AddWordsAsync(uint64_t* sums, const uint64_t* left, const uint64_t* right,
                           size_t count, Stream& stream) {
  const size_t bytes = count * sizeof(uint64_t);
  CIPHERD_RETURN_IF_ERROR(
      stream.DeclareAccess({{{sums, bytes, true}, {left, bytes, false}, {right, bytes, false}}}));
  auto* const tasks = dynamic_cast<TaskStream*>(&stream);
  if (tasks == nullptr) {
    return cuda::AddWords(sums, left, right, count, FaultDevice::Unwrap(stream));
  }
  return tasks->Submit("add words", [=] {
    for (size_t i = 0; i < count; ++i) sums[i] = left[i] + right[i];
    return absl::OkStatus();
  });
}

absl::Status AddConstantAsync(uint64_t* sums, const uint64_t* words, uint64_t addend, size_t count,
                              Stream& stream) {
  const size_t bytes = count * sizeof(uint64_t);
  CIPHERD_RETURN_IF_ERROR(stream.DeclareAccess({{{sums, bytes, true}, {words, bytes, false}}}));
  auto* const tasks = dynamic_cast<TaskStream*>(&stream);
  if (tasks == nullptr) {
    return cuda::AddConstant(sums, words, addend, count, FaultDevice::Unwrap(stream));
  }
  return tasks->Submit("add constant", [=] {
    for (size_t i = 0; i < count; ++i) sums[i] = words[i] + addend;
    return absl::OkStatus();
  });
}

}  // namespace cipherd::testing
