// Where a slab pool gets its slabs: the system's allocator behind one small interface.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"

namespace cipherd::runtime {

// The pool calls it under its lock, but for the slabs of its start, which several threads allocate
// at once. Functions must not call the pool.
class SlabSource {
 public:
  virtual ~SlabSource() = default;

  // Thread-safe. A slab of `bytes` (a multiple of 256), aligned to 256 bytes. ResourceExhausted
  // where the system has none.
  virtual absl::StatusOr<void*> Allocate(size_t bytes) = 0;

  // Gives back a slab from Allocate. Failures are logged and counted, there is nobody to tell.
  virtual void Free(void* slab, size_t bytes) = 0;

  // Tells checkers of memory (AddressSanitizer) whether anyone may touch this range.
  virtual void SetAccessible(void* address, size_t bytes, bool accessible) {}
};

}  // namespace cipherd::runtime
