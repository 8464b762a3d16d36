// A file descriptor that closes with its owner, and what calls of POSIX on files come to.
//
//   const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
//   if (!fd.is_open()) return ErrnoStatus("cannot open", path);
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"

namespace cipherd::base {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  // What open returned.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { Close(); }

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // For somebody else to close.
  int Release() { return std::exchange(fd_, -1); }
  void Close();

 private:
  int fd_ = -1;
};

// The error that errno tells of: "`what` '`path`'".
absl::Status ErrnoStatus(const char* what, const std::string& path);

// Makes what was made, renamed or removed in the directory survive a crash.
absl::Status SyncDirectory(const std::string& path);

}  // namespace cipherd::base
