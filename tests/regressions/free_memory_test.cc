// The daemon kept for ever what its allocator once had: after a flood of calls hundreds of
// megabytes, until it was restarted.
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/sanitizers.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"

namespace cipherd::server {
namespace {

using namespace server::testing;  // NOLINT: the test's own vocabulary

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

class FreeMemoryTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServerOptions options = TestOptions(directory_.path());
    options.free_memory_interval = absl::Milliseconds(10);
    Start(options);
  }
};

TEST_F(FreeMemoryTest, WhatWasFreedGoesBackToTheSystem) {
#if CIPHERD_ADDRESS_SANITIZER || CIPHERD_THREAD_SANITIZER
  GTEST_SKIP() << "another allocator";
#endif
  // As a flood leaves a heap: some blocks in use all over it, free space between them.
  constexpr int64_t kBlockBytes = 32 << 10;
  constexpr int64_t kBlockCount = 1024;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < kBlockCount; ++i) {
    blocks.emplace_back(new char[kBlockBytes]);
    std::memset(blocks.back().get(), 1, kBlockBytes);
  }
  const int64_t most = ResidentBytes();
  for (int i = 0; i < kBlockCount; ++i) {
    if (i % 8 != 7) blocks[i].reset();
  }
  const int64_t expected = most - kBlockBytes * kBlockCount * 3 / 4;
  for (int i = 0; i < 1000 && ResidentBytes() > expected; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LE(ResidentBytes(), expected);
}

}  // namespace
}  // namespace cipherd::server
