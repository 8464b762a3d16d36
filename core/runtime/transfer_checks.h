// Arguments of copies and fills, checked alike on every device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace cipherd::runtime {

// Requires bytes > 0. InvalidArgument for null pointers.
inline absl::Status CheckFillArguments(const void* destination, size_t bytes) {
  if (destination != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("Stream::FillAsync: the destination of %d bytes is null", bytes));
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
