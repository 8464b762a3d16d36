#include "core/base/atomic_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cipherd::base {
namespace {

std::string DirectoryOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Whether the new file is still there once it is locked: before, it looks abandoned.
bool LockNewFile(int fd) {
  while (flock(fd, LOCK_EX) != 0) {
    // Without locks nobody can find it abandoned either.
    if (errno != EINTR) return true;
  }
  struct stat status = {};
  return fstat(fd, &status) != 0 || status.st_nlink > 0;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, std::string temporary_path, FileDescriptor fd)
    : path_(std::move(path)), temporary_path_(std::move(temporary_path)), fd_(std::move(fd)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    Discard();
    path_ = std::move(other.path_);
    temporary_path_ = std::move(other.temporary_path_);
    fd_ = std::move(other.fd_);
  }
  return *this;
}

AtomicFile::~AtomicFile() { Discard(); }

void AtomicFile::Discard() {
  if (!fd_.is_open()) return;
  fd_.Close();
  unlink(temporary_path_.c_str());
}

absl::StatusOr<AtomicFile> AtomicFile::Create(std::string path, mode_t mode) {
  std::random_device random;
  std::string temporary_path;
  FileDescriptor fd;
  do {
    temporary_path = absl::StrFormat("%s.%08x%s", path, random(), kTemporarySuffix);
    fd = FileDescriptor(
        open(temporary_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!fd.is_open()) return ErrnoStatus("cannot create", temporary_path);
  } while (!LockNewFile(fd.get()));
  AtomicFile file(std::move(path), temporary_path, std::move(fd));
  // The umask may have taken bits away.
  if (fchmod(file.fd_.get(), mode) != 0)
    return ErrnoStatus("cannot set the mode of", temporary_path);
  return file;
}

bool AtomicFile::RemoveIfAbandoned(const std::string& temporary_path) {
  // For writing: some file systems lock nothing else exclusively.
  const FileDescriptor fd(open(temporary_path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.is_open() || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
  // Its writer, should it be about to lock it, finds it gone and makes another. One that was
  // renamed meanwhile has this name no more.
  return unlink(temporary_path.c_str()) == 0;
}

absl::Status AtomicFile::Write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus("cannot write", temporary_path_);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit(Existing existing) && {
  if (fsync(fd_.get()) != 0) return ErrnoStatus("cannot flush", temporary_path_);
  const unsigned flags = existing == Existing::kKeep ? RENAME_NOREPLACE : 0;
  if (renameat2(AT_FDCWD, temporary_path_.c_str(), AT_FDCWD, path_.c_str(), flags) != 0) {
    return ErrnoStatus("cannot write", path_);
  }
  fd_.Close();
  return SyncDirectory(DirectoryOf(path_));
}

}  // namespace cipherd::base
