#include "core/runtime/host/host_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "core/base/sanitizers.h"
#include "core/runtime/device_health.h"
#include "spdlog/spdlog.h"

#if CIPHERD_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace cipherd::runtime::host {

absl::StatusOr<void*> HostSlabSource::Allocate(size_t bytes) {
  void* const slab =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (slab == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("mmap of ", bytes, " bytes: ", std::strerror(errno)));
  }
  // Polynomials of megabytes are read in strides of thousands of bytes: with pages of 4 KiB, each
  // line of some would need a translation of its own. A system without large pages says no, and
  // does with small ones.
  (void)madvise(slab, bytes, MADV_HUGEPAGE);
  if (is_locked_ && mlock(slab, bytes) != 0) {
    static std::once_flag logged;
    std::call_once(logged, [&] {
      spdlog::warn("pinned memory of the CPU device is not locked: mlock of {} bytes: {}", bytes,
                   std::strerror(errno));
    });
  }
  return slab;
}

void HostSlabSource::Free(void* slab, size_t bytes) {
  if (munmap(slab, bytes) != 0) LogCleanupFailure("munmap", std::strerror(errno));
}

void HostSlabSource::SetAccessible(void* address, size_t bytes, bool accessible) {
#if CIPHERD_ADDRESS_SANITIZER
  if (accessible) {
    ASAN_UNPOISON_MEMORY_REGION(address, bytes);
  } else {
    ASAN_POISON_MEMORY_REGION(address, bytes);
  }
#endif
}

}  // namespace cipherd::runtime::host
