// Device work for tests of layers that know no kernels: sums of 64-bit words, on every device.
//
// Each function enqueues one kernel on `stream` and does not synchronise; the caller keeps the
// device memory alive. Sums wrap modulo 2^64. Inside a capture the memory is declared, as real
// kernels do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "core/runtime/stream.h"

namespace cipherd::testing {

// sums[i] = left[i] + right[i] for i < count. Ranges may be equal, but not overlap otherwise.
absl::Status AddWordsAsync(uint64_t* sums, const uint64_t* left, const uint64_t* right,
                           size_t count, runtime::Stream& stream);

// sums[i] = words[i] + addend.
absl::Status AddConstantAsync(uint64_t* sums, const uint64_t* words, uint64_t addend, size_t count,
                              runtime::Stream& stream);

}  // namespace cipherd::testing
