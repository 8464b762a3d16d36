// Writes a file of cipherctl: magic, header, payload, hash (FILES.md).
//
//   ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path, 0644, header));
//   RETURN_IF_ERROR(file.WriteBytes(payload));
//   RETURN_IF_ERROR(std::move(file).Commit(base::AtomicFile::Existing::kReplace));
//
// or the same as bytes in memory: InMemory(header), …, std::move(file).TakeBytes().
//
// Move-only; nothing appears under the name before Commit. Used by one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/files/files.pb.h"
#include "core/base/atomic_file.h"
#include "core/base/sha256.h"
#include "proto/codec/payload_source.h"

namespace cipherd::client {

// The eight bytes that every file starts with; the last is the version.
inline constexpr uint8_t kFileMagic[8] = {'C', 'I', 'P', 'H', 'E', 'R', 'D', 1};
inline constexpr uint64_t kMaxFileMessageBytes = uint64_t{16} << 20;

class FileWriter {
 public:
  static absl::StatusOr<FileWriter> Create(std::string path, mode_t mode,
                                           const files::FileHeader& header);
  static absl::StatusOr<FileWriter> InMemory(const files::FileHeader& header);

  absl::Status WriteBytes(std::span<const uint8_t> bytes);
  // Four bytes of length, then the message. InvalidArgument above 16 MiB.
  absl::Status WriteMessage(const google::protobuf::MessageLite& message);
  absl::Status WritePayload(codec::PayloadSource payload);

  // Of a file that was created.
  absl::Status Commit(base::AtomicFile::Existing existing) &&;
  // Of one in memory.
  std::string TakeBytes() &&;

 private:
  explicit FileWriter(std::optional<base::AtomicFile> file) : file_(std::move(file)) {}
  absl::Status WriteHead(const files::FileHeader& header);
  absl::Status WriteRaw(std::span<const uint8_t> bytes);

  // Absent: bytes_ takes what is written.
  std::optional<base::AtomicFile> file_;
  std::string bytes_;
  base::Sha256 hash_;
};

}  // namespace cipherd::client
