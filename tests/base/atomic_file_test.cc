#include "core/base/atomic_file.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::base {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "cipherd_atomic_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(directory_)) files.push_back(entry.path());
    return files;
  }

  fs::path directory_;
};

TEST_F(AtomicFileTest, WhatSomebodyWritesIsNotAbandoned) {
  ASSERT_OK_AND_ASSIGN(AtomicFile file, AtomicFile::Create(directory_ / "file", 0600));
  ASSERT_EQ(Files().size(), 1u);
  EXPECT_FALSE(AtomicFile::RemoveIfAbandoned(Files().at(0)));
  ASSERT_OK(std::move(file).Commit(AtomicFile::Existing::kReplace));
  EXPECT_EQ(Files(), std::vector<std::string>{directory_ / "file"});
}

TEST_F(AtomicFileTest, WhatAWriterThatIsGoneHasLeftIsRemoved) {
  std::string left;
  {
    ASSERT_OK_AND_ASSIGN(const AtomicFile file, AtomicFile::Create(directory_ / "file", 0600));
    left = Files().at(0);
    // Out of its sight, so that it leaves what a killed process would.
    fs::rename(left, left + ".aside");
  }
  fs::rename(left + ".aside", left);
  EXPECT_TRUE(AtomicFile::RemoveIfAbandoned(left));
  EXPECT_TRUE(Files().empty());
  EXPECT_FALSE(AtomicFile::RemoveIfAbandoned(left));
}

}  // namespace
}  // namespace cipherd::base
