// The memory pool of every device, for device memory and for pinned memory: blocks cut from slabs,
// handed out again in the order of streams.
//
//   ASSIGN_OR_RETURN(auto pool, SlabPool::Create("device memory of cpu:0", MemorySpace::kDevice,
//                                                device, options, std::move(source)));
//   ASSIGN_OR_RETURN(StoragePtr block, pool->Allocate(bytes, stream.progress()));
//
// Rules of reuse are in memory.h. A block is the best fit among what may be handed out; free
// neighbours are merged, those that wait for one stream when it asks for more than one of them. A
// request above the slab size gets a slab of exactly its size. Slabs are kept when empty, until
// Trim or until the budget needs them.
//
//                allocate                last owner lets go
//        kFree ------------> kLive ----------------------------+
//          ^                   ^                               |
//          |                   | same stream, at once          v
//          +---------------- kReusable <------------------- kWaiting
//              its stream passed        the other streams passed
//
// A block allocated inside a capture belongs to the CapturePool: when let go it becomes kReusable
// (for the same stream in that capture, if no other stream used it) or kWaiting, and stays so until
// the CapturePool dies. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/runtime/device.h"
#include "core/runtime/memory.h"
#include "core/runtime/slab_source.h"
#include "core/runtime/stream_progress.h"

namespace cipherd::runtime {

class SlabPool;

// The blocks that a capture, and then its graph, reserves. Its destructor gives them back; blocks
// that still have owners become ordinary ones. Whoever destroys it knows that the graph's launches
// are over.
class CapturePool {
 public:
  ~CapturePool();
  CapturePool(const CapturePool&) = delete;
  CapturePool& operator=(const CapturePool&) = delete;

  size_t bytes() const;

 private:
  friend class SlabPool;
  explicit CapturePool(std::shared_ptr<SlabPool> pool) : pool_(std::move(pool)) {}

  const std::shared_ptr<SlabPool> pool_;
  // Guarded by the lock of the pool. Addresses of the blocks, and their sum of bytes.
  std::set<uintptr_t> blocks_;
  size_t bytes_ = 0;
};

class SlabPool : public std::enable_shared_from_this<SlabPool> {
 public:
  // `label` names the pool in errors. `device` may be null in tests. Reserves
  // options.initial_bytes, in slabs that several threads take at once: pinning a gigabyte takes
  // half a second. Errors: InvalidArgument for the options, ResourceExhausted from the source, or,
  // before anything is pinned, where the machine has not so much left.
  static absl::StatusOr<std::shared_ptr<SlabPool>> Create(std::string_view label, MemorySpace space,
                                                          Device* device,
                                                          const PoolOptions& options,
                                                          std::unique_ptr<SlabSource> source);
  ~SlabPool();
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  // A block for work of the stream behind `owner`, or of no stream where it is null (pinned
  // memory). With `capture`, a block reserved to it. ResourceExhausted, naming asked and available
  // bytes, beyond the budget or what the source has.
  absl::StatusOr<StoragePtr> Allocate(size_t bytes, std::shared_ptr<StreamProgress> owner,
                                      CapturePool* capture = nullptr);

  std::unique_ptr<CapturePool> OpenCapture();

  MemoryStats stats();

  // Returns every slab that holds no block to the source.
  void Trim();

  struct Location {
    enum class Kind {
      kOutside,  // not in a slab of this pool
      kNotLive,  // in a slab, but not wholly inside one live block
      kLive,
    };
    Kind kind = Kind::kOutside;
    // Of a live block: its address, the capture that it belongs to, and a reference that expires
    // when its last owner lets go.
    const void* block = nullptr;
    const CapturePool* capture = nullptr;
    std::weak_ptr<Storage> storage;
  };
  Location Locate(const void* address, size_t bytes);

 private:
  class BlockStorage;
  friend class CapturePool;

  // One stream that used a block, and how far it must come.
  struct Use {
    std::shared_ptr<StreamProgress> progress;
    uint64_t position = 0;
  };
  enum class BlockState : uint8_t { kFree, kLive, kReusable, kWaiting };
  struct Block {
    uintptr_t address = 0;
    uintptr_t slab = 0;
    size_t bytes = 0;
    BlockState state = BlockState::kFree;
    // Null for pinned memory and for a block that was never used.
    std::shared_ptr<StreamProgress> owner;
    // While live: the other streams that use it. Afterwards: every stream that has not passed yet.
    std::vector<Use> uses;
    CapturePool* capture = nullptr;
    // The current owner's storage.
    std::weak_ptr<Storage> storage;
    size_t requested_bytes = 0;
  };
  // (bytes, address): the first one that is not less than (n, 0) is the best fit for n bytes.
  using SizeOrder = std::set<std::pair<size_t, uintptr_t>>;
  using ReuseKey = std::pair<const StreamProgress*, const CapturePool*>;

  SlabPool(std::string_view label, MemorySpace space, Device* device, const PoolOptions& options,
           std::unique_ptr<SlabSource> source);

  void Release(uintptr_t address);
  void RecordUse(uintptr_t address, std::shared_ptr<StreamProgress> progress);
  void CloseCapture(CapturePool& capture);

  Block* FindFit(size_t bytes, const StreamProgress* owner, const CapturePool* capture)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeBlock(Block& block, size_t bytes, std::shared_ptr<StreamProgress> owner,
                 CapturePool* capture) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Moves a block that has no owner to the state that its outstanding uses ask for, and merges it.
  void Settle(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Merges `block` with neighbours that may be handed out under the same conditions.
  void Merge(Block& block, bool also_reusable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Merges what this stream may reuse, for a request that no single block of it fits.
  void MergeReusable(const StreamProgress* owner, const CapturePool* capture)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddToOrder(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RemoveFromOrder(Block& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CollectPassed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes room for a block of `bytes`, which stands for a request of `requested_bytes`.
  absl::Status Grow(size_t bytes, size_t requested_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AddSlab(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AdoptSlab(void* data, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reserves options.initial_bytes. Before anybody else has the pool.
  absl::Status ReserveInitial();
  void FreeEmptySlabs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddAllocated(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string label_;
  const MemorySpace space_;
  Device* const device_;
  const PoolOptions options_;
  const std::unique_ptr<SlabSource> source_;

  std::mutex mu_;
  std::map<uintptr_t, size_t> slab_bytes_ ABSL_GUARDED_BY(mu_);
  // Every block of every slab; together they tile the slabs.
  std::map<uintptr_t, Block> blocks_ ABSL_GUARDED_BY(mu_);
  SizeOrder free_ ABSL_GUARDED_BY(mu_);
  std::map<ReuseKey, SizeOrder> reusable_ ABSL_GUARDED_BY(mu_);
  // Addresses of blocks without owner that wait for streams and belong to no capture.
  std::set<uintptr_t> pending_ ABSL_GUARDED_BY(mu_);
  MemoryStats stats_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::runtime
