#include "core/base/file_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace cipherd::base {

void FileDescriptor::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

absl::Status ErrnoStatus(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " '", path, "'"));
}

absl::Status SyncDirectory(const std::string& path) {
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return ErrnoStatus("cannot open directory", path);
  return fsync(fd.get()) == 0 ? absl::OkStatus() : ErrnoStatus("cannot flush", path);
}

}  // namespace cipherd::base
