// Vectors in files that people have: CSV, JSON and NumPy's .npy.
//
//   a.csv    one vector a line: 1.5, 2, -3e-2      (empty lines and lines that start with # are
//   skipped) a.json   [[1.5, 2, -0.03], …], or one vector: [1.5, 2, -0.03] a.npy    float64,
//   float32 or uint8, one or two dimensions, row-major, little-endian (versions 1 to 3)
//
// The format goes by the extension. InvalidArgument names path and place; rows may differ in length
// here, and are compared with a program's layout later. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/slot_layout.h"

namespace cipherd::client {

absl::StatusOr<Vectors> ReadVectors(const std::string& path);

// The parts, on bytes; `path` is for messages.
absl::StatusOr<Vectors> ParseCsv(std::string_view text, std::string_view path);
absl::StatusOr<Vectors> ParseJson(std::string_view text, std::string_view path);
absl::StatusOr<Vectors> ParseNpy(std::string_view bytes, std::string_view path);

// Seventeen significant digits: reading gives the same numbers.
std::string ToCsv(const Vectors& vectors);

}  // namespace cipherd::client
