#include "core/base/allocator_policy.h"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "core/base/sanitizers.h"
#include "gtest/gtest.h"

namespace cipherd::base {
namespace {

#if CIPHERD_ADDRESS_SANITIZER || CIPHERD_THREAD_SANITIZER
constexpr bool kIsGlibcAllocator = false;
#else
constexpr bool kIsGlibcAllocator = true;
#endif

// By glibc's own account.
int CountArenas() {
  char* text = nullptr;
  size_t size = 0;
  FILE* stream = open_memstream(&text, &size);
  malloc_info(0, stream);
  std::fclose(stream);
  int count = 0;
  for (const char* at = text; (at = std::strstr(at, "<heap nr=")) != nullptr; ++at) ++count;
  std::free(text);
  return count;
}

// Of a process in which `thread_count` threads have memory at once.
[[noreturn]] void ExitWithTheArenasOf(int thread_count) {
  KeepLargeBlocks();
  absl::Barrier all_have_some(thread_count);
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&all_have_some] {
      // Volatile, so that it is not optimised away.
      void* volatile some = std::malloc(1000);
      all_have_some.Block();
      std::free(some);
    });
  }
  for (std::thread& thread : threads) thread.join();
  _exit(CountArenas());
}

TEST(AllocatorPolicyTest, ThereIsAnArenaACoreAtMost) {
  if (!kIsGlibcAllocator) GTEST_SKIP() << "another allocator";
  const int core_count = static_cast<int>(std::thread::hardware_concurrency());
  const auto is_few = [core_count](int status) {
    return WIFEXITED(status) && WEXITSTATUS(status) >= 1 && WEXITSTATUS(status) <= core_count;
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ExitWithTheArenasOf(2 * core_count + 2), is_few, "");
}

TEST(AllocatorPolicyTest, FreeMemoryIsReturnedFromTheMidstOfTheHeap) {
  if (!kIsGlibcAllocator) GTEST_SKIP() << "another allocator";
  // Blocks of 8 pages, all but each eighth of them given back: none at the top.
  constexpr size_t kBlockBytes = 32 << 10;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < 1024; ++i) {
    blocks.emplace_back(new char[kBlockBytes]);
    std::memset(blocks.back().get(), 1, kBlockBytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 8 != 7) blocks[i].reset();
  }
  const auto resident_pages = [] {
    long total = 0;
    long resident = 0;
    FILE* file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr || std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    if (file != nullptr) std::fclose(file);
    return resident;
  };
  const long before = resident_pages();
  ReturnFreeMemory();
  // Of the 28 MiB, what must be whole pages.
  EXPECT_LT(resident_pages(), before - 24 * (1 << 20) / sysconf(_SC_PAGESIZE));
}

}  // namespace
}  // namespace cipherd::base
