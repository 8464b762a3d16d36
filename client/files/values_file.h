// Encrypted inputs or outputs of one evaluation on disk.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/program_description.h"
#include "core/value/value_tree.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::client {

struct EncryptedValues {
  std::string program;
  // Vectors in each value.
  int64_t item_count = 0;
  value::ValueTree tree;
};

absl::Status WriteValuesFile(const std::string& path, const EncryptedValues& values);

// The bytes of such a file.
absl::StatusOr<std::string> EncodeValuesFile(const EncryptedValues& values);

// InvalidArgument where the file belongs to another program, or its tree is not of `signature` (one
// of those of `program`).
absl::StatusOr<EncryptedValues> ReadValuesFile(const std::string& path,
                                               const ProgramDescription& program,
                                               const execution::ValueTreeSignature& signature,
                                               const codec::WireLimits& limits);
// From its bytes; messages call them `name`.
absl::StatusOr<EncryptedValues> DecodeValuesFile(std::span<const uint8_t> bytes,
                                                 const std::string& name,
                                                 const ProgramDescription& program,
                                                 const execution::ValueTreeSignature& signature,
                                                 const codec::WireLimits& limits);

}  // namespace cipherd::client
