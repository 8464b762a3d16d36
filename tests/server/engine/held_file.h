// A file whose reader waits until the test lets it go on: a pipe in its place.
//
//   HeldFile held(path);          // whoever opens the file waits
//   held.AwaitReader();           // somebody does
//   held.Release();               // and reads what it held
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace cipherd::engine::testing {

class HeldFile {
 public:
  explicit HeldFile(std::filesystem::path path) : path_(std::move(path)) {
    std::ifstream file(path_, std::ios::binary);
    content_ = {std::istreambuf_iterator<char>(file), {}};
    std::filesystem::remove(path_);
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
  }
  ~HeldFile() { Release(); }
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;

  // Blocks until somebody has opened the file.
  void AwaitReader() {
    if (fd_ < 0) fd_ = open(path_.c_str(), O_WRONLY);
  }
  // Blocks until somebody has opened the file and read it; puts the file back.
  void Release() {
    if (std::exchange(is_released_, true)) return;
    AwaitReader();
    EXPECT_EQ(write(fd_, content_.data(), content_.size()), static_cast<ssize_t>(content_.size()));
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary) << content_;
    close(fd_);
  }

 private:
  const std::filesystem::path path_;
  std::string content_;
  // For writing, once there is a reader.
  int fd_ = -1;
  bool is_released_ = false;
};

}  // namespace cipherd::engine::testing
