// Key sets as files, which survive a restart.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto files, KeyFiles::Open("/var/lib/cipherd/keys"));
//   for (const KeyFiles::Found& found : files->found()) ...       // complete sets of earlier runs
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
// One process at a time has a directory. Every function but found() blocks on the disk: not for
// threads that serve. Thread-safe for different sets.
#pragma once

#include <functional>
#include <memory>
#include <string>
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
  // Creates the directory where it is missing. Removes what earlier runs left half written, and
  // files that are damaged. FailedPrecondition where others may read or write the directory;
  // Unavailable where another process has it; errors of the file system, naming the path.
  static absl::StatusOr<std::unique_ptr<KeyFiles>> Open(const std::string& directory);
  KeyFiles(const KeyFiles&) = delete;
  KeyFiles& operator=(const KeyFiles&) = delete;

  struct Found {
    KeySetInfoRef info;
    absl::Time last_use;
  };
  // What Open found.
  const std::vector<Found>& found() const { return found_; }

  // Returns once the set would survive a crash. ResourceExhausted where the disk is full.
  absl::Status Write(const KeySetInfo& info, const ckks::KeySet& keys) const;

  using Allocator = std::function<absl::StatusOr<value::Tensor>(std::vector<int64_t> shape)>;
  // DataLoss where the bytes are not those of the id; errors of `allocate`.
  absl::StatusOr<ckks::KeySet> Read(const KeySetInfo& info, const Allocator& allocate) const;

  // Idempotent.
  absl::Status Remove(const KeySetInfo& info) const;
  // Remembers a use across restarts. Failures are logged.
  void RecordUse(const KeySetInfo& info, absl::Time time) const;

 private:
  KeyFiles(std::string directory, base::FileDescriptor lock)
      : directory_(std::move(directory)), lock_(std::move(lock)) {}

  absl::Status Scan();
  void ScanTenant(const std::string& tenant_directory);
  std::string TenantDirectory(const KeySetInfo& info) const;
  std::string PathOf(const KeySetInfo& info) const;

  const std::string directory_;
  const base::FileDescriptor lock_;
  std::vector<Found> found_;
};

}  // namespace cipherd::engine
