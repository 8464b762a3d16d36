#include "core/base/allocator_policy.h"

#include <malloc.h>

#include "core/base/processor_count.h"

namespace cipherd::base {

bool KeepLargeBlocks() {
  constexpr int kMmapThresholdBytes = 32 << 20;
  constexpr int kTrimThresholdBytes = 1 << 30;
  return mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes) == 1 &&
         mallopt(M_TRIM_THRESHOLD, kTrimThresholdBytes) == 1 &&
         mallopt(M_ARENA_MAX, ProcessorCount()) == 1;
}

void ReturnFreeMemory() { malloc_trim(0); }

}  // namespace cipherd::base
