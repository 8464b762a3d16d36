// A file that has a path and is nowhere on disk, for decoders that open theirs.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "core/base/file_descriptor.h"
#include "core/base/sha256.h"
#include "tests/fuzz/fuzz_target.h"

namespace cipherd::fuzz {

class MemoryFile {
 public:
  // Of mode 0600.
  explicit MemoryFile(std::string_view bytes) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    Require(fd_.is_open() && fchmod(fd_.get(), 0600) == 0, "there is memory for the file");
    Require(write(fd_.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
            "the file is written");
  }

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

 private:
  base::FileDescriptor fd_;
};

// `bytes` and their SHA-256, which no mutation would find: as files of cipherctl and heads of key
// files end.
inline std::string WithHash(std::string_view bytes, std::string_view hashed) {
  const base::Sha256Digest digest =
      base::Sha256Of({reinterpret_cast<const uint8_t*>(hashed.data()), hashed.size()});
  std::string file(bytes);
  file.append(digest.begin(), digest.end());
  return file;
}
inline std::string WithHash(std::string_view bytes) { return WithHash(bytes, bytes); }

}  // namespace cipherd::fuzz
