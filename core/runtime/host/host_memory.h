// Slabs of host memory: for the memory space of the CPU device, and for its pinned memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/runtime/slab_source.h"

namespace cipherd::runtime::host {

// Page-aligned, zeroed anonymous memory. Under AddressSanitizer, what the pool has not handed out
// is poisoned, so that a block used after its time or beyond its end is reported.
class HostSlabSource final : public SlabSource {
 public:
  // With `is_locked`, slabs are locked in memory where the system permits it (RLIMIT_MEMLOCK);
  // where it does not, they work all the same and only one line is logged.
  explicit HostSlabSource(bool is_locked) : is_locked_(is_locked) {}

  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* slab, size_t bytes) override;
  void SetAccessible(void* address, size_t bytes, bool accessible) override;

 private:
  const bool is_locked_;
};

}  // namespace cipherd::runtime::host
