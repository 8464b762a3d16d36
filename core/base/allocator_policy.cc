#include "core/base/allocator_policy.h"

#include <malloc.h>

namespace cipherd::base {

bool KeepLargeBlocks() {
  constexpr int kMmapThresholdBytes = 32 << 20;
  constexpr int kTrimThresholdBytes = 1 << 30;
  return mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes) == 1 &&
         mallopt(M_TRIM_THRESHOLD, kTrimThresholdBytes) == 1;
}

}  // namespace cipherd::base
