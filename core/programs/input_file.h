// A regular file that is read at offsets and never longer than its reader admits.
//
//   CIPHERD_ASSIGN_OR_RETURN(std::string text, ReadTextFile("program.textproto", 1 << 20));
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"

namespace cipherd::programs {

// Move-only, thread-compatible. Messages begin with the path.
class InputFile {
 public:
  // NotFound where there is nothing; InvalidArgument where it is not a regular file;
  // ResourceExhausted beyond `max_bytes`; Internal for other failures of the system.
  static absl::StatusOr<InputFile> Open(const std::string& path, int64_t max_bytes);

  // When it was opened.
  int64_t bytes() const { return bytes_; }

  // Reads exactly `bytes` bytes. InvalidArgument where the file has become shorter.
  absl::Status ReadAt(int64_t offset, void* destination, size_t bytes) const;

 private:
  InputFile(std::string path, base::FileDescriptor fd, int64_t bytes)
      : path_(std::move(path)), fd_(std::move(fd)), bytes_(bytes) {}

  std::string path_;
  base::FileDescriptor fd_;
  int64_t bytes_ = 0;
};

// The whole content of a file of at most `max_bytes`. Errors as InputFile::Open.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, int64_t max_bytes);

}  // namespace cipherd::programs
