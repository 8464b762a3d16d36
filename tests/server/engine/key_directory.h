// A key directory of a test's own, gone with it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace cipherd::engine::testing {

class KeyDirectory {
 public:
  KeyDirectory() : path_(::testing::TempDir() + "cipherd_keys_XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~KeyDirectory() { std::filesystem::remove_all(path_); }
  KeyDirectory(const KeyDirectory&) = delete;
  KeyDirectory& operator=(const KeyDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cipherd::engine::testing
