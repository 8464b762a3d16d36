// The head of a key set's file (key_files.h has the format) as bytes, and back.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/key_set.h"

namespace cipherd::engine {

// Magic, length, head and its hash: everything before the keys' words.
std::string EncodeKeyFileHead(const KeySetInfo& info);

// Bytes before the length of the head has been read.
inline constexpr size_t kKeyFilePrefixBytes = 12;
// No head is longer: 4096 keys of a few hundred bytes.
inline constexpr uint32_t kMaxKeyFileHeadBytes = uint32_t{4} << 20;

// Bytes of head and hash that follow `prefix`. DataLoss where it is not that of such a file.
absl::StatusOr<size_t> KeyFileHeadBytes(const std::string& prefix);

// What the file holds, its id computed from the hashes in the head. `rest` is what follows the
// prefix. DataLoss where anything is out of order.
absl::StatusOr<std::shared_ptr<KeySetInfo>> DecodeKeyFileHead(const std::string& rest);

}  // namespace cipherd::engine
