// The two pools of a device.
#pragma once

#include <memory>

#include "core/runtime/slab_pool.h"

namespace cipherd::runtime {

struct MemoryPools {
  std::shared_ptr<SlabPool> device;
  std::shared_ptr<SlabPool> pinned;

  SlabPool::Location Locate(const void* address, size_t bytes) const {
    SlabPool::Location location = device->Locate(address, bytes);
    if (location.kind == SlabPool::Location::Kind::kOutside) {
      location = pinned->Locate(address, bytes);
    }
    return location;
  }

  void Trim() const {
    device->Trim();
    pinned->Trim();
  }
};

}  // namespace cipherd::runtime
