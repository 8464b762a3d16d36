// Named arrays that a program computes with: the content of its safetensors file.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "core/value/tensor.h"

namespace cipherd::programs {

// Host tensors by name.
using Constants = std::map<std::string, value::Tensor>;

// Reads a safetensors file (8-byte little-endian header length, JSON header, tensors) of F64, F32, I64 and I32
// tensors. InvalidArgument naming file and tensor where header, shape, dtype or offsets are off, overlap or leave
// the file; NotFound where there is no such file; ResourceExhausted beyond `max_bytes`.
absl::StatusOr<Constants> ReadSafetensors(const std::string& path, int64_t max_bytes);

}  // namespace cipherd::programs
