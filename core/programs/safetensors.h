// Reads safetensors files: 8 bytes of header length (little-endian), a JSON header, the tensors.
//
//   {"w": {"dtype": "F32", "shape": [64, 784], "data_offsets": [0, 200704]}, "__metadata__": {…}}
//
// A file is checked whole before a tensor is allocated: the header's length, syntax and duplicate
// keys, every dtype, shape and offset; the tensors must cover the data exactly, without gap or
// overlap. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/programs/constants.h"

namespace cipherd::programs {

// Longest header that is read.
inline constexpr int64_t kMaxSafetensorsHeaderBytes = int64_t{16} << 20;

// Tensors of dtype F64, F32, I64 and I32, copied into pageable host memory. NotFound where there is
// no such file; ResourceExhausted where it is larger than `max_bytes`; InvalidArgument naming file
// and tensor, expected and actual, for everything else that is off.
absl::StatusOr<Constants> ReadSafetensors(const std::string& path, int64_t max_bytes);

}  // namespace cipherd::programs
