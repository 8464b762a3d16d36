#include "server/engine/key_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/atomic_file.h"
#include "core/base/file_descriptor.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "server/engine/key_file_head.h"
#include "spdlog/spdlog.h"

namespace cipherd::engine {
namespace {

namespace fs = std::filesystem;
using base::ErrnoStatus;
using base::FileDescriptor;
using base::SyncDirectory;

constexpr char kSuffix[] = ".keys";
// Hashed while it is in cache.
constexpr size_t kBlockBytes = size_t{1} << 18;

// The calls of POSIX that may move fewer bytes than asked for.
absl::Status ReadWhole(int fd, void* data, size_t bytes, const std::string& path) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t count = read(fd, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus("cannot read", path);
    if (count == 0) return absl::DataLossError(absl::StrCat("'", path, "' ends early"));
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

// With mode 0700, and so that it survives a crash.
absl::Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0) {
    return errno == EEXIST ? absl::OkStatus() : ErrnoStatus("cannot make directory", path);
  }
  const std::string parent = fs::path(path).parent_path().string();
  return SyncDirectory(parent.empty() ? "." : parent);
}

// What the file at `path` says that it holds, and its bytes before the keys' words.
absl::StatusOr<std::pair<std::shared_ptr<KeySetInfo>, int64_t>> ReadHead(int fd,
                                                                         const std::string& path) {
  std::string prefix(kKeyFilePrefixBytes, '\0');
  CIPHERD_RETURN_IF_ERROR(ReadWhole(fd, prefix.data(), prefix.size(), path));
  CIPHERD_ASSIGN_OR_RETURN(const size_t rest_bytes, KeyFileHeadBytes(prefix));
  std::string rest(rest_bytes, '\0');
  CIPHERD_RETURN_IF_ERROR(ReadWhole(fd, rest.data(), rest.size(), path));
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<KeySetInfo> info, DecodeKeyFileHead(rest));
  return std::pair(std::move(info), static_cast<int64_t>(prefix.size() + rest.size()));
}

absl::Time ModificationTime(const struct stat& status) {
  return absl::TimeFromTimespec(status.st_mtim);
}

}  // namespace

absl::StatusOr<std::unique_ptr<KeyFiles>> KeyFiles::Open(const std::string& directory) {
  CIPHERD_RETURN_IF_ERROR(MakeDirectory(directory));
  struct stat status = {};
  if (stat(directory.c_str(), &status) != 0) return ErrnoStatus("cannot look at", directory);
  if ((status.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "key directory '%s' is open to others: expected mode 0700, got %04o; change "
        "it with chmod",
        directory, status.st_mode & 07777));
  }
  const std::string lock_path = absl::StrCat(directory, "/lock");
  FileDescriptor lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.is_open()) return ErrnoStatus("cannot open", lock_path);
  // Held by the descriptor: it goes with the process, however that ends.
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(
        absl::StrCat("key directory '", directory, "' is in use by another process"));
  }
  std::unique_ptr<KeyFiles> files(new KeyFiles(directory, std::move(lock)));
  CIPHERD_RETURN_IF_ERROR(files->Scan());
  return files;
}

absl::Status KeyFiles::Scan() {
  std::error_code error;
  for (fs::directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory(error)) ScanTenant(it->path().string());
  }
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot read directory '", directory_, "': ", error.message()));
  }
  return absl::OkStatus();
}

void KeyFiles::ScanTenant(const std::string& tenant_directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(tenant_directory, error), end; !error && it != end;
       it.increment(error)) {
    paths.push_back(it->path().string());
  }
  if (error) spdlog::error("cannot read directory '{}': {}", tenant_directory, error.message());
  for (const std::string& path : paths) {
    if (absl::EndsWith(path, base::AtomicFile::kTemporarySuffix)) {
      spdlog::info("removing what was left half written: {}", path);
      unlink(path.c_str());
      continue;
    }
    if (!absl::EndsWith(path, kSuffix)) continue;
    const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    struct stat status = {};
    if (!fd.is_open() || fstat(fd.get(), &status) != 0) {
      spdlog::error("cannot open '{}': errno {}", path, errno);
      continue;
    }
    auto head = ReadHead(fd.get(), path);
    // The place says whose it is and which: a file that was moved is another's.
    if (head.ok() &&
        (PathOf(*head->first) != path || head->second + head->first->bytes != status.st_size)) {
      head = absl::DataLossError(absl::StrCat("'", path, "' is not what its name says"));
    }
    if (head.ok()) {
      found_.push_back({head->first, ModificationTime(status)});
    } else if (absl::IsDataLoss(head.status())) {
      spdlog::error("removing a damaged key set: {}", std::string(head.status().message()));
      unlink(path.c_str());
    } else {
      spdlog::error("leaving a key set aside: {}", std::string(head.status().message()));
    }
  }
}

std::string KeyFiles::TenantDirectory(const KeySetInfo& info) const {
  const std::span tenant(reinterpret_cast<const uint8_t*>(info.tenant.data()), info.tenant.size());
  return absl::StrCat(directory_, "/", base::ToHex(base::Sha256Of(tenant)));
}

std::string KeyFiles::PathOf(const KeySetInfo& info) const {
  return absl::StrCat(TenantDirectory(info), "/", info.id, kSuffix);
}

absl::Status KeyFiles::Write(const KeySetInfo& info, const ckks::KeySet& keys) const {
  CIPHERD_RETURN_IF_ERROR(MakeDirectory(TenantDirectory(info)));
  CIPHERD_ASSIGN_OR_RETURN(base::AtomicFile file,
                           base::AtomicFile::Create(PathOf(info), /*mode=*/0600));
  const std::string head = EncodeKeyFileHead(info);
  CIPHERD_RETURN_IF_ERROR(file.Write({reinterpret_cast<const uint8_t*>(head.data()), head.size()}));
  for (const auto& [id, key] : keys) {
    CIPHERD_RETURN_IF_ERROR(
        file.Write({key.data.data_as<const uint8_t>(), static_cast<size_t>(key.data.bytes())}));
  }
  return std::move(file).Commit(base::AtomicFile::Existing::kReplace);
}

absl::StatusOr<ckks::KeySet> KeyFiles::Read(const KeySetInfo& info,
                                            const Allocator& allocate) const {
  const std::string path = PathOf(info);
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.is_open() && errno == ENOENT) {
    return absl::DataLossError(absl::StrCat("'", path, "' has gone"));
  }
  if (!fd.is_open()) return ErrnoStatus("cannot open", path);
  CIPHERD_ASSIGN_OR_RETURN(const auto head, ReadHead(fd.get(), path));
  if (head.first->id != info.id) {
    return absl::DataLossError(absl::StrCat("'", path, "' holds another key set"));
  }
  ckks::KeySet keys;
  for (const KeyDescription& description : info.keys) {
    CIPHERD_ASSIGN_OR_RETURN(value::Tensor tensor, allocate(description.shape));
    base::Sha256 hash;
    auto* at = tensor.data_as<uint8_t>();
    for (size_t left = static_cast<size_t>(tensor.bytes()); left > 0;) {
      const size_t count = std::min(left, kBlockBytes);
      CIPHERD_RETURN_IF_ERROR(ReadWhole(fd.get(), at, count, path));
      hash.Update(at, count);
      at += count;
      left -= count;
    }
    if (hash.Finish() != description.digest) {
      return absl::DataLossError(
          absl::StrCat("'", path, "': ", description.id.ToString(), " is not what its hash says"));
    }
    keys.emplace(description.id, ckks::EvaluationKey{description.id, std::move(tensor)});
  }
  return keys;
}

absl::Status KeyFiles::Remove(const KeySetInfo& info) const {
  const std::string path = PathOf(info);
  if (unlink(path.c_str()) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoStatus("cannot remove", path);
  }
  return SyncDirectory(TenantDirectory(info));
}

void KeyFiles::RecordUse(const KeySetInfo& info, absl::Time time) const {
  const std::string path = PathOf(info);
  const timespec times[2] = {absl::ToTimespec(time), absl::ToTimespec(time)};
  if (utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0 && errno != ENOENT) {
    spdlog::warn("cannot set the time of '{}': errno {}", path, errno);
  }
}

}  // namespace cipherd::engine
