#include "core/programs/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::programs {
namespace {

absl::Status SystemError(const std::string& path, const char* call, int error) {
  const std::string message = absl::StrCat(path, ": ", call, ": ", std::strerror(error));
  return error == ENOENT || error == ENOTDIR ? absl::NotFoundError(message)
                                             : absl::InternalError(message);
}

}  // namespace

absl::StatusOr<InputFile> InputFile::Open(const std::string& path, int64_t max_bytes) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer. No effect on regular files.
  base::FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) return SystemError(path, "open", errno);
  struct stat attributes = {};
  if (fstat(fd.get(), &attributes) != 0) return SystemError(path, "fstat", errno);
  InputFile file(path, std::move(fd), attributes.st_size);
  if (!S_ISREG(attributes.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected a regular file"));
  }
  if (file.bytes() > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": expected at most ", max_bytes, " bytes, got ", file.bytes()));
  }
  return file;
}

absl::Status InputFile::ReadAt(int64_t offset, void* destination, size_t bytes) const {
  char* next = static_cast<char*>(destination);
  while (bytes > 0) {
    const ssize_t count = pread(fd_.get(), next, bytes, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path_, "pread", errno);
    if (count == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": expected ", bytes, " more bytes at ", offset, ", got none"));
    }
    next += count;
    offset += count;
    bytes -= static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, int64_t max_bytes) {
  CIPHERD_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path, max_bytes));
  std::string text(file.bytes(), '\0');
  CIPHERD_RETURN_IF_ERROR(file.ReadAt(0, text.data(), text.size()));
  return text;
}

}  // namespace cipherd::programs
