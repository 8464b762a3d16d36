#include "core/base/allocator_policy.h"

#include <malloc.h>

#include <algorithm>
#include <thread>

namespace cipherd::base {

bool KeepLargeBlocks() {
  constexpr int kMmapThresholdBytes = 32 << 20;
  constexpr int kTrimThresholdBytes = 1 << 30;
  // Zero where the number of cores is unknown, which would mean as many as glibc likes.
  const int arena_count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes) == 1 &&
         mallopt(M_TRIM_THRESHOLD, kTrimThresholdBytes) == 1 &&
         mallopt(M_ARENA_MAX, arena_count) == 1;
}

void ReturnFreeMemory() { malloc_trim(0); }

}  // namespace cipherd::base
