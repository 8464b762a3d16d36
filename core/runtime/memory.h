// Memory of the host and of devices: who owns a block, and where it lives.
//
// A Storage owns one block. Device and pinned blocks come from slab pools of their device
// (slab_pool.h); pageable blocks from the heap. Blocks are 256-byte aligned (64 for pageable).
//
// Device memory is stream-ordered: the block belongs to the stream it was allocated on. When the
// last owner lets go of it, work already enqueued may still use it, so the block is handed out
// again only
//   - to an allocation on the same stream, at once (FIFO order protects it), or
//   - to any other, once every stream that the block was used on (its own, and each one named to
//     RecordUse) has finished what was enqueued there when the owner let go.
// Pinned memory belongs to no stream: each stream that reads or writes it asynchronously is named
// to RecordUse, and the block is handed out again once those have passed. Dropping an owner
// therefore never blocks, and never frees what is in flight. Inside a capture the same is to be
// declared: a block that another stream of the capture uses is named to RecordUse too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace cipherd::runtime {

class Device;
class Stream;

enum class MemorySpace : uint8_t { kPageable, kPinned, kDevice };

// "host", "pinned host" or "device".
std::string ToString(MemorySpace space);

// One owned block of memory. Shared by std::shared_ptr<Storage>; thread-safe as far as its own
// members go, its bytes are ordered by streams. Addresses never change.
class Storage {
 public:
  virtual ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Null for a block of 0 bytes. Device memory must not be dereferenced by host code, also where
  // the device is the CPU.
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  MemorySpace space() const { return space_; }
  // The device that the memory is on (kDevice), or whose pinned pool it came from (kPinned); null
  // for pageable memory. The device outlives the storage.
  Device* device() const { return device_; }
  bool is_host() const { return space_ != MemorySpace::kDevice; }

  // Says that work enqueued on `stream` uses this block, so that the block is not handed out again
  // before that work is done. Not needed for the stream that it was allocated on. Does not block.
  virtual void RecordUse(Stream& stream) = 0;

 protected:
  Storage(void* data, size_t bytes, MemorySpace space, Device* device)
      : data_(data), bytes_(bytes), space_(space), device_(device) {}

 private:
  void* data_;
  size_t bytes_;
  MemorySpace space_;
  Device* device_;
};

using StoragePtr = std::shared_ptr<Storage>;

// Pageable, uninitialised host memory. ResourceExhausted where the heap has none.
// RecordUse on it is a no-op: whoever copies from it keeps the owner until the copy is done.
absl::StatusOr<StoragePtr> AllocatePageable(size_t bytes);

// Bytes of one memory space of one device.
struct MemoryStats {
  // In live blocks, blocks held by graphs and blocks that wait for streams included.
  size_t allocated_bytes = 0;
  // In slabs taken from the system.
  size_t reserved_bytes = 0;
  size_t peak_allocated_bytes = 0;
  // Upper bound of reserved_bytes.
  size_t budget_bytes = 0;
  // Calls to the system's allocator so far; stands still in a warmed-up server.
  uint64_t slab_allocation_count = 0;
};

}  // namespace cipherd::runtime
