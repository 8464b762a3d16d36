#include "server/engine/key_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <string_view>
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

bool IsKeySetId(std::string_view id) {
  return id.size() == 64 && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Paths in the tenants' directories whose names end in `suffix`.
std::vector<std::string> FilesOfTenants(const std::string& directory, const char* suffix) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator tenant(directory, error), end; !error && tenant != end;
       tenant.increment(error)) {
    std::error_code ignored;
    if (!tenant->is_directory(ignored)) continue;
    std::error_code file_error;
    for (fs::directory_iterator file(tenant->path(), file_error); !file_error && file != end;
         file.increment(file_error)) {
      if (absl::EndsWith(file->path().string(), suffix)) paths.push_back(file->path().string());
    }
    if (file_error) {
      spdlog::error("cannot read directory '{}': {}", tenant->path().string(),
                    file_error.message());
    }
  }
  return paths;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KeyFiles>> KeyFiles::Open(const std::string& directory,
                                                         Sharing sharing) {
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
  const int operation = sharing == Sharing::kShared ? LOCK_SH : LOCK_EX;
  if (flock(lock.get(), operation | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus("cannot lock", lock_path);
    return absl::UnavailableError(
        absl::StrCat("key directory '", directory, "' is in use by another process"));
  }
  std::unique_ptr<KeyFiles> files(new KeyFiles(directory, sharing, std::move(lock)));
  CIPHERD_RETURN_IF_ERROR(files->Scan());
  return files;
}

absl::StatusOr<FileDescriptor> KeyFiles::LockNames(int operation) const {
  if (sharing_ == Sharing::kOneProcess) return FileDescriptor();
  // A descriptor of its own: threads of one process exclude each other, too.
  const std::string path = absl::StrCat(directory_, "/names");
  FileDescriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.is_open()) return ErrnoStatus("cannot open", path);
  while (flock(lock.get(), operation) != 0) {
    if (errno != EINTR) return ErrnoStatus("cannot lock", path);
  }
  return lock;
}

absl::Status KeyFiles::Scan() {
  for (const std::string& path : FilesOfTenants(directory_, base::AtomicFile::kTemporarySuffix)) {
    if (base::AtomicFile::RemoveIfAbandoned(path)) {
      spdlog::info("removed what was left half written: {}", path);
    }
  }
  CIPHERD_ASSIGN_OR_RETURN(const auto entries, List());
  for (const auto& [path, last_use] : entries) {
    absl::StatusOr<Found> found = Look(path);
    if (absl::IsDataLoss(found.status())) {
      CIPHERD_ASSIGN_OR_RETURN(const FileDescriptor lock, LockNames(LOCK_EX));
      // Somebody may have written it again.
      found = Look(path);
      if (absl::IsDataLoss(found.status())) {
        spdlog::error("removing a damaged key set: {}", std::string(found.status().message()));
        unlink(path.c_str());
        continue;
      }
    }
    if (found.ok()) {
      found_.push_back(*std::move(found));
    } else if (!absl::IsNotFound(found.status())) {
      spdlog::error("leaving a key set aside: {}", std::string(found.status().message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, absl::Time>> KeyFiles::List() const {
  // An error of the directory itself is the caller's matter; a tenant's may vanish meanwhile.
  std::error_code error;
  const fs::directory_iterator probe(directory_, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot read directory '", directory_, "': ", error.message()));
  }
  std::map<std::string, absl::Time> entries;
  for (std::string& path : FilesOfTenants(directory_, kSuffix)) {
    struct stat status = {};
    if (lstat(path.c_str(), &status) == 0) {
      entries.emplace(std::move(path), ModificationTime(status));
    } else if (errno != ENOENT) {
      return ErrnoStatus("cannot look at", path);
    }
  }
  return entries;
}

absl::StatusOr<KeyFiles::Found> KeyFiles::Look(const std::string& path) const {
  const FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status = {};
  if (!fd.is_open() && errno == ENOENT) {
    return absl::NotFoundError(absl::StrCat("'", path, "' is not there"));
  }
  if (!fd.is_open() || fstat(fd.get(), &status) != 0) return ErrnoStatus("cannot open", path);
  CIPHERD_ASSIGN_OR_RETURN(const auto head, ReadHead(fd.get(), path));
  // The place says whose it is and which: a file that was moved is another's.
  if (PathOf(*head.first) != path || head.second + head.first->bytes != status.st_size) {
    return absl::DataLossError(absl::StrCat("'", path, "' is not what its name says"));
  }
  return Found{head.first, ModificationTime(status)};
}

absl::StatusOr<KeyFiles::Found> KeyFiles::Find(const std::string& tenant,
                                               const std::string& id) const {
  if (!IsKeySetId(id)) return UnknownKeySet(id);
  return Look(absl::StrCat(TenantDirectory(tenant), "/", id, kSuffix));
}

std::string KeyFiles::TenantDirectory(std::string_view tenant) const {
  const std::span bytes(reinterpret_cast<const uint8_t*>(tenant.data()), tenant.size());
  return absl::StrCat(directory_, "/", base::ToHex(base::Sha256Of(bytes)));
}

std::string KeyFiles::PathOf(const KeySetInfo& info) const {
  return absl::StrCat(TenantDirectory(info.tenant), "/", info.id, kSuffix);
}

bool KeyFiles::IsGone(const KeySetInfo& info) const {
  struct stat status = {};
  return lstat(PathOf(info).c_str(), &status) != 0 && errno == ENOENT;
}

absl::Status KeyFiles::Write(const KeySetInfo& info, const ckks::KeySet& keys) const {
  CIPHERD_RETURN_IF_ERROR(MakeDirectory(TenantDirectory(info.tenant)));
  CIPHERD_ASSIGN_OR_RETURN(base::AtomicFile file,
                           base::AtomicFile::Create(PathOf(info), /*mode=*/0600));
  const std::string head = EncodeKeyFileHead(info);
  CIPHERD_RETURN_IF_ERROR(file.Write({reinterpret_cast<const uint8_t*>(head.data()), head.size()}));
  for (const auto& [id, key] : keys) {
    CIPHERD_RETURN_IF_ERROR(
        file.Write({key.data.data_as<const uint8_t>(), static_cast<size_t>(key.data.bytes())}));
  }
  CIPHERD_ASSIGN_OR_RETURN(const FileDescriptor lock, LockNames(LOCK_SH));
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
  return SyncDirectory(TenantDirectory(info.tenant));
}

absl::Status KeyFiles::RemoveUnlessUsedSince(const KeySetInfo& info, absl::Time last_use) const {
  CIPHERD_ASSIGN_OR_RETURN(const FileDescriptor lock, LockNames(LOCK_EX));
  struct stat status = {};
  if (sharing_ == Sharing::kShared && lstat(PathOf(info).c_str(), &status) == 0 &&
      ModificationTime(status) > last_use) {
    return absl::OkStatus();
  }
  return Remove(info);
}

bool KeyFiles::RecordUse(const KeySetInfo& info, absl::Time time) const {
  const std::string path = PathOf(info);
  const absl::StatusOr<FileDescriptor> lock = LockNames(LOCK_SH);
  if (!lock.ok()) {
    spdlog::warn("cannot set the time of '{}': {}", path, std::string(lock.status().message()));
    return access(path.c_str(), F_OK) == 0;
  }
  const timespec times[2] = {absl::ToTimespec(time), absl::ToTimespec(time)};
  if (utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  spdlog::warn("cannot set the time of '{}': errno {}", path, errno);
  return true;
}

}  // namespace cipherd::engine
