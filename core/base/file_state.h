// What of a file changes when it is written or replaced, for those who read it again when it has.
//
//   const FileState seen = FileState::Of(path);     // before the file is read
//   ...
//   if (FileState::Of(path) != seen) ... read it again
#pragma once

#include <sys/stat.h>

#include <string>

namespace cipherd::base {

struct FileState {
  ino_t inode = 0;
  off_t bytes = 0;
  timespec modified = {};
  // Of its owner and mode, too, which decide whether it can be read.
  timespec changed = {};

  // Of what `path` leads to, through links. That of no file where there is none.
  static FileState Of(const std::string& path) {
    struct stat found = {};
    if (stat(path.c_str(), &found) != 0) return {};
    return {.inode = found.st_ino,
            .bytes = found.st_size,
            .modified = found.st_mtim,
            .changed = found.st_ctim};
  }

  bool operator==(const FileState& other) const {
    return inode == other.inode && bytes == other.bytes &&
           modified.tv_sec == other.modified.tv_sec && modified.tv_nsec == other.modified.tv_nsec &&
           changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
  }
};

}  // namespace cipherd::base
