// Key sets as files, which survive a restart.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto files, KeyFiles::Open("/var/lib/cipherd/keys"));
//   CIPHERD_ASSIGN_OR_RETURN(auto entries, files->List());         // complete sets
//   CIPHERD_ASSIGN_OR_RETURN(KeyFiles::Found found, files->Find(tenant, id));
//   CIPHERD_RETURN_IF_ERROR(files->Write(info, keys));
//   CIPHERD_ASSIGN_OR_RETURN(ckks::KeySet keys, files->Read(info, allocate));
//
// One file a set, addressed by content: DIRECTORY/<SHA-256 of the tenant>/<key set id>.keys. A file
// is written beside its place, flushed and renamed, and its directory flushed: whenever the process
// ends, a set is there whole or not at all, and what was half written goes at the next Open.
// Directories have mode 0700, files 0600. Bytes are compared with their hash whenever they are
// read, and the hashes with the id.
//
// Format, integers little-endian: "CIPHKEY" and the byte 1 (version); u32 bytes of the head; the
// head: u32 length and bytes of the tenant, 32 bytes context id, u32 number of keys, and for each
// key, sorted by id, u8 type (core/ckks/key_set_id.h), i64 rotation step, u8 rank, i64 each
// dimension, 32 bytes SHA-256 of its words; 32 bytes SHA-256 of the head; the keys' words.
//
// One process at a time has a directory, or, where each of them says so, several share it, also on
// different machines: the file system must have locks (flock), atomic renames, and show a file that
// was closed to who opens it afterwards. A file's time of modification is the last use that anybody
// has recorded. Who removes a file to make room asks under a lock whether others have used the set
// since (RemoveUnlessUsedSince); nobody writes, or answers for, a file meanwhile. A partial file is
// removed where its writer has ended, never under one that lives (core/base/atomic_file.h).
//
// Everything here blocks on the disk: not for threads that serve. Thread-safe for different sets.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/file_descriptor.h"
#include "core/value/tensor.h"
#include "server/engine/key_set.h"

namespace cipherd::engine {

class KeyFiles {
 public:
  enum class Sharing : uint8_t { kOneProcess, kShared };

  // Creates the directory where it is missing. Removes what was left half written, and files that
  // are damaged. FailedPrecondition where others may read or write the directory; Unavailable where
  // another process has it, unless both share; errors of the file system, naming the path.
  static absl::StatusOr<std::unique_ptr<KeyFiles>> Open(const std::string& directory,
                                                        Sharing sharing = Sharing::kOneProcess);
  KeyFiles(const KeyFiles&) = delete;
  KeyFiles& operator=(const KeyFiles&) = delete;

  struct Found {
    KeySetInfoRef info;
    absl::Time last_use;
  };
  // What Open found.
  const std::vector<Found>& found() const { return found_; }

  // The set of `tenant`, whoever wrote it. NotFound where there is no such file, or `id` is not 64
  // hexadecimal digits; DataLoss where it is not what its name says.
  absl::StatusOr<Found> Find(const std::string& tenant, const std::string& id) const;
  // Names of all files and the last uses in them.
  absl::StatusOr<std::map<std::string, absl::Time>> List() const;
  // What the file of that name in the list is. Errors as Find.
  absl::StatusOr<Found> Look(const std::string& path) const;
  // The name of the set's file in the list.
  std::string PathOf(const KeySetInfo& info) const;

  // Whether the set certainly has no file.
  bool IsGone(const KeySetInfo& info) const;

  // Returns once the set would survive a crash. ResourceExhausted where the disk is full.
  absl::Status Write(const KeySetInfo& info, const ckks::KeySet& keys) const;

  using Allocator = std::function<absl::StatusOr<value::Tensor>(std::vector<int64_t> shape)>;
  // DataLoss where the bytes are not those of the id; errors of `allocate`.
  absl::StatusOr<ckks::KeySet> Read(const KeySetInfo& info, const Allocator& allocate) const;

  // Idempotent.
  absl::Status Remove(const KeySetInfo& info) const;
  // The same, but leaves a file in which a use after `last_use` is recorded.
  absl::Status RemoveUnlessUsedSince(const KeySetInfo& info, absl::Time last_use) const;
  // Remembers a use across restarts, and for those who share. False where there is no file; other
  // failures are logged. Once it has returned true, nobody removes the file for want of room who
  // does not know of this use.
  bool RecordUse(const KeySetInfo& info, absl::Time time) const;

 private:
  KeyFiles(std::string directory, Sharing sharing, base::FileDescriptor lock)
      : directory_(std::move(directory)), sharing_(sharing), lock_(std::move(lock)) {}

  absl::Status Scan();
  std::string TenantDirectory(std::string_view tenant) const;
  // Who changes what stands under a name holds it: `operation` of flock, LOCK_SH for who writes a
  // set or its time, LOCK_EX for who looks at one and then removes it. Nothing to hold where nobody
  // shares.
  absl::StatusOr<base::FileDescriptor> LockNames(int operation) const;

  const std::string directory_;
  const Sharing sharing_;
  const base::FileDescriptor lock_;
  std::vector<Found> found_;
};

}  // namespace cipherd::engine
