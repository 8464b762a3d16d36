// A file that appears under its name whole, or not at all.
//
//   ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create("secret.key", 0600));
//   RETURN_IF_ERROR(file.Write(bytes));
//   RETURN_IF_ERROR(std::move(file).Commit(AtomicFile::Existing::kKeep));
//
// Bytes go to a new file beside the place (exclusively created with its final mode, so that a
// secret is never readable in between), are flushed to disk, and the file is renamed. Move-only;
// what is not committed is removed. Used by one thread. Errors name the path.
//
// The new file is locked (flock) while it is written: others can tell it from one that was left by
// a process that ended (RemoveIfAbandoned), also on other machines where the file system has locks
// across them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"

namespace cipherd::base {

class AtomicFile {
 public:
  // How the name of a file that was not committed ends, whatever ended the process.
  static constexpr char kTemporarySuffix[] = ".tmp";

  // What happens to a file that has the name already.
  enum class Existing : uint8_t { kReplace, kKeep };

  // The umask does not change `mode`.
  static absl::StatusOr<AtomicFile> Create(std::string path, mode_t mode);
  // Removes a file whose name ends in kTemporarySuffix, unless somebody is writing it: whether it
  // has done so.
  static bool RemoveIfAbandoned(const std::string& temporary_path);
  AtomicFile(AtomicFile&& other) noexcept = default;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  absl::Status Write(std::span<const uint8_t> bytes);

  // AlreadyExists where there is a file of that name and it is to be kept.
  absl::Status Commit(Existing existing) &&;

 private:
  AtomicFile(std::string path, std::string temporary_path, FileDescriptor fd);
  void Discard();

  std::string path_;
  std::string temporary_path_;
  // Open until the file is committed.
  FileDescriptor fd_;
};

}  // namespace cipherd::base
