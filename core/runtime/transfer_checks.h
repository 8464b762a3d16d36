// Arguments of copies and fills, checked alike on every device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "core/runtime/memory_pools.h"

namespace cipherd::runtime {

// Requires bytes > 0. InvalidArgument where the range does not start in device or pinned memory of
// the device whose pools these are.
inline absl::Status CheckFillArguments(const MemoryPools& pools, const void* destination,
                                       size_t bytes) {
  if (pools.Locate(destination, bytes).kind != SlabPool::Location::Kind::kOutside) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "Stream::FillAsync: the %d bytes at %p are not device or pinned memory of this device", bytes,
      destination));
}

// Requires bytes > 0. InvalidArgument for null pointers and for ranges that overlap.
inline absl::Status CheckCopyArguments(const void* destination, const void* source, size_t bytes) {
  if (destination == nullptr || source == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("Stream::CopyAsync: the %s of %d bytes is null",
                        destination == nullptr ? "destination" : "source", bytes));
  }
  const uintptr_t to = reinterpret_cast<uintptr_t>(destination);
  const uintptr_t from = reinterpret_cast<uintptr_t>(source);
  const uintptr_t distance = to > from ? to - from : from - to;
  if (distance < bytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "Stream::CopyAsync: source %p and destination %p overlap in a copy of %d bytes", source,
        destination, bytes));
  }
  return absl::OkStatus();
}

}  // namespace cipherd::runtime
