// Reads a file of cipherctl, as FileWriter wrote it.
//
//   ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path, files::FileHeader::kValues));
//   ... file.header().values() ...
//   RETURN_IF_ERROR(file.ReadBytes(buffer));
//   RETURN_IF_ERROR(file.Finish());
//
// What was read must not be used before Finish has found the hash right. InvalidArgument, naming
// the path, for what is no such file, holds something else, ends early or is damaged. Move-only;
// used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/files/files.pb.h"
#include "core/base/file_descriptor.h"
#include "core/base/sha256.h"

namespace cipherd::client {

class FileReader {
 public:
  // A look at the open file before anything is read.
  using Inspect = std::function<absl::Status(int fd)>;

  static absl::StatusOr<FileReader> Open(const std::string& path,
                                         files::FileHeader::ContentCase content,
                                         const Inspect& inspect = nullptr);

  // The same from bytes in memory, which outlive the reader; messages call them `name`.
  static absl::StatusOr<FileReader> FromBytes(std::span<const uint8_t> bytes,
                                              const std::string& name,
                                              files::FileHeader::ContentCase content);

  const files::FileHeader& header() const { return header_; }
  // Bytes between here and the hash.
  uint64_t remaining_bytes() const { return remaining_bytes_; }

  absl::Status ReadBytes(std::span<uint8_t> bytes);
  absl::Status ReadMessage(google::protobuf::MessageLite* message);
  // Checks that nothing is left, and the hash.
  absl::Status Finish();

 private:
  FileReader(std::string path, base::FileDescriptor fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}
  // `total_bytes`: of all that there is.
  absl::Status Begin(uint64_t total_bytes, files::FileHeader::ContentCase content);
  absl::Status ReadHeader(files::FileHeader::ContentCase content);
  absl::Status ReadRaw(std::span<uint8_t> bytes);
  absl::Status Damaged(std::string_view what) const;

  std::string path_;
  // Not open: `bytes_` has what is left.
  base::FileDescriptor fd_;
  std::span<const uint8_t> bytes_;
  files::FileHeader header_;
  base::Sha256 hash_;
  uint64_t remaining_bytes_ = 0;
};

}  // namespace cipherd::client
