#include "core/runtime/slab_pool.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/status_macros.h"
#include "core/runtime/host_memory_limit.h"

namespace cipherd::runtime {
namespace {

constexpr size_t kBlockAlignment = 256;
// More do not pin faster.
constexpr size_t kInitialThreads = 8;

// Nothing where the rounded size exceeds 64 bits.
std::optional<size_t> RoundToAlignment(size_t bytes) {
  const std::optional<uint64_t> padded = base::CheckedAdd(bytes, kBlockAlignment - 1);
  if (!padded.has_value()) return std::nullopt;
  return *padded / kBlockAlignment * kBlockAlignment;
}

}  // namespace

// The owner's end of a block.
class SlabPool::BlockStorage final : public Storage {
 public:
  BlockStorage(std::shared_ptr<SlabPool> pool, void* data, size_t bytes, MemorySpace space,
               Device* device)
      : Storage(data, bytes, space, device), pool_(std::move(pool)) {}

  ~BlockStorage() override {
    if (data() != nullptr) pool_->Release(reinterpret_cast<uintptr_t>(data()));
  }

  void RecordUse(Stream& stream) override {
    if (data() != nullptr) {
      pool_->RecordUse(reinterpret_cast<uintptr_t>(data()), stream.progress());
    }
  }

 private:
  const std::shared_ptr<SlabPool> pool_;
};

CapturePool::~CapturePool() { pool_->CloseCapture(*this); }

size_t CapturePool::bytes() const {
  std::lock_guard lock(pool_->mu_);
  return bytes_;
}

absl::StatusOr<std::shared_ptr<SlabPool>> SlabPool::Create(std::string_view label,
                                                           MemorySpace space, Device* device,
                                                           const PoolOptions& options,
                                                           std::unique_ptr<SlabSource> source) {
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  std::shared_ptr<SlabPool> pool(new SlabPool(label, space, device, options, std::move(source)));
  CIPHERD_RETURN_IF_ERROR(pool->ReserveInitial());
  return pool;
}

absl::Status SlabPool::ReserveInitial() {
  const size_t total_bytes = options_.initial_bytes / kBlockAlignment * kBlockAlignment;
  const size_t slab_count =
      total_bytes / options_.slab_bytes + (total_bytes % options_.slab_bytes > 0);
  if (const std::optional<size_t> available = AvailableHostBytes();
      space_ == MemorySpace::kPinned && available.has_value() &&
      options_.initial_bytes > *available) {
    return absl::ResourceExhaustedError(absl::StrCat(label_, ": asked for ", options_.initial_bytes,
                                                     " bytes at the start, and the machine has ",
                                                     *available, " left"));
  }
  std::atomic<size_t> next = 0;
  absl::Status status;
  const auto take_slabs = [&] {
    for (size_t i = next++; i < slab_count; i = next++) {
      const size_t bytes = std::min(options_.slab_bytes, total_bytes - i * options_.slab_bytes);
      const absl::StatusOr<void*> data = source_->Allocate(bytes);
      std::lock_guard lock(mu_);
      ++stats_.slab_allocation_count;
      if (data.ok()) {
        AdoptSlab(*data, bytes);
      } else {
        status.Update(data.status());
        next = slab_count;
      }
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(slab_count, kInitialThreads); ++i) {
    others.emplace_back(take_slabs);
  }
  take_slabs();
  for (std::thread& other : others) other.join();
  return status;
}

SlabPool::SlabPool(std::string_view label, MemorySpace space, Device* device,
                   const PoolOptions& options, std::unique_ptr<SlabSource> source)
    : label_(label), space_(space), device_(device), options_(options), source_(std::move(source)) {
  stats_.budget_bytes = options.budget_bytes;
}

SlabPool::~SlabPool() {
  // No storage is left, since each one owns the pool. Streams are gone too: nothing is in flight.
  for (const auto& [address, bytes] : slab_bytes_) {
    source_->SetAccessible(reinterpret_cast<void*>(address), bytes, true);
    source_->Free(reinterpret_cast<void*>(address), bytes);
  }
}

absl::StatusOr<StoragePtr> SlabPool::Allocate(size_t bytes, std::shared_ptr<StreamProgress> owner,
                                              CapturePool* capture) {
  if (bytes == 0) {
    return std::make_shared<BlockStorage>(shared_from_this(), nullptr, 0, space_, device_);
  }
  const std::optional<size_t> rounded = RoundToAlignment(bytes);
  std::lock_guard lock(mu_);
  CollectPassed();
  Block* block = nullptr;
  if (rounded.has_value()) block = FindFit(*rounded, owner.get(), capture);
  if (block == nullptr && rounded.has_value() && owner != nullptr) {
    MergeReusable(owner.get(), capture);
    block = FindFit(*rounded, owner.get(), capture);
  }
  if (block == nullptr) {
    CIPHERD_RETURN_IF_ERROR(Grow(rounded.value_or(bytes), bytes));
    block = FindFit(*rounded, owner.get(), capture);
  }
  TakeBlock(*block, *rounded, std::move(owner), capture);
  block->requested_bytes = bytes;
  void* const data = reinterpret_cast<void*>(block->address);
  source_->SetAccessible(data, bytes, true);
  auto storage = std::make_shared<BlockStorage>(shared_from_this(), data, bytes, space_, device_);
  block->storage = storage;
  return storage;
}

std::unique_ptr<CapturePool> SlabPool::OpenCapture() {
  return std::unique_ptr<CapturePool>(new CapturePool(shared_from_this()));
}

MemoryStats SlabPool::stats() {
  std::lock_guard lock(mu_);
  CollectPassed();
  return stats_;
}

void SlabPool::Trim() {
  std::lock_guard lock(mu_);
  CollectPassed();
  FreeEmptySlabs();
}

SlabPool::Location SlabPool::Locate(const void* address, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  std::lock_guard lock(mu_);
  auto after = blocks_.upper_bound(begin);
  if (after == blocks_.begin()) return {};
  const Block& block = std::prev(after)->second;
  if (begin - block.address >= block.bytes) return {};
  Location location;
  location.kind = Location::Kind::kNotLive;
  const size_t offset = begin - block.address;
  if (block.state != BlockState::kLive || offset > block.requested_bytes ||
      bytes > block.requested_bytes - offset) {
    return location;
  }
  location.kind = Location::Kind::kLive;
  location.block = reinterpret_cast<const void*>(block.address);
  location.capture = block.capture;
  location.storage = block.storage;
  return location;
}

void SlabPool::Release(uintptr_t address) {
  std::lock_guard lock(mu_);
  Block& block = blocks_.at(address);
  block.storage.reset();
  if (block.owner != nullptr) block.uses.push_back({block.owner, 0});
  for (Use& use : block.uses) use.position = use.progress->Mark();
  if (block.capture == nullptr) {
    Settle(block);
    return;
  }
  const bool used_by_others = block.uses.size() > 1;
  block.state = used_by_others ? BlockState::kWaiting : BlockState::kReusable;
  AddToOrder(block);
  Merge(block, /*also_reusable=*/false);
}

void SlabPool::RecordUse(uintptr_t address, std::shared_ptr<StreamProgress> progress) {
  std::lock_guard lock(mu_);
  Block& block = blocks_.at(address);
  if (progress == block.owner) return;
  const bool known = std::any_of(block.uses.begin(), block.uses.end(),
                                 [&](const Use& use) { return use.progress == progress; });
  if (!known) block.uses.push_back({std::move(progress), 0});
}

void SlabPool::CloseCapture(CapturePool& capture) {
  std::lock_guard lock(mu_);
  for (uintptr_t address : capture.blocks_) {
    // A block that was merged into its neighbour is gone; the neighbour is in the set too.
    auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second.capture != &capture) continue;
    Block& block = found->second;
    RemoveFromOrder(block);
    block.capture = nullptr;
    if (block.state != BlockState::kLive) Settle(block);
  }
}

// Best fit among the blocks that only FIFO order protects and those that nothing protects; in a
// capture among its own first, so that holes elsewhere do not make graphs larger. A block which its
// own stream still uses is not for a capture: the graph may be launched on any stream.
SlabPool::Block* SlabPool::FindFit(size_t bytes, const StreamProgress* owner,
                                   const CapturePool* capture) {
  const std::pair<size_t, uintptr_t> wanted(bytes, 0);
  std::optional<std::pair<size_t, uintptr_t>> best;
  if (owner != nullptr) {
    if (auto order = reusable_.find({owner, capture}); order != reusable_.end()) {
      if (auto fit = order->second.lower_bound(wanted); fit != order->second.end()) best = *fit;
    }
  }
  if (capture != nullptr && best.has_value()) return &blocks_.at(best->second);
  if (auto fit = free_.lower_bound(wanted); fit != free_.end()) {
    if (!best.has_value() || fit->first < best->first) best = *fit;
  }
  return best.has_value() ? &blocks_.at(best->second) : nullptr;
}

void SlabPool::TakeBlock(Block& block, size_t bytes, std::shared_ptr<StreamProgress> owner,
                         CapturePool* capture) {
  RemoveFromOrder(block);
  if (block.bytes > bytes) {
    Block rest;
    rest.address = block.address + bytes;
    rest.slab = block.slab;
    rest.bytes = block.bytes - bytes;
    rest.state = block.state;
    rest.owner = block.owner;
    rest.uses = block.uses;
    rest.capture = block.capture;
    block.bytes = bytes;
    if (rest.capture != nullptr) rest.capture->blocks_.insert(rest.address);
    AddToOrder(blocks_.emplace(rest.address, std::move(rest)).first->second);
  }
  if (block.state == BlockState::kFree) AddAllocated(bytes);
  if (capture != nullptr && block.capture == nullptr) capture->bytes_ += bytes;
  if (capture != nullptr) capture->blocks_.insert(block.address);
  block.state = BlockState::kLive;
  block.owner = std::move(owner);
  block.uses.clear();
  block.capture = capture;
}

void SlabPool::Settle(Block& block) {
  std::erase_if(block.uses, [](const Use& use) { return use.progress->HasPassed(use.position); });
  if (block.uses.empty()) {
    block.state = BlockState::kFree;
    block.owner.reset();
    stats_.allocated_bytes -= block.bytes;
    source_->SetAccessible(reinterpret_cast<void*>(block.address), block.bytes, false);
  } else if (block.uses.size() == 1 && block.uses.front().progress == block.owner) {
    block.state = BlockState::kReusable;
  } else {
    block.state = BlockState::kWaiting;
  }
  AddToOrder(block);
  Merge(block, /*also_reusable=*/false);
}

// The lower address survives. A kReusable block has one use, its owner's, of which the later
// position covers both. Other streams would then wait longer than they must, so that outside a
// capture these merge on demand only.
void SlabPool::Merge(Block& block, bool also_reusable) {
  const auto mergeable = [&](const Block& a, const Block& b) {
    const bool is_mergeable_state =
        a.state == BlockState::kFree ||
        (a.state == BlockState::kReusable && (also_reusable || a.capture != nullptr));
    return a.slab == b.slab && a.state == b.state && a.owner == b.owner && a.capture == b.capture &&
           is_mergeable_state;
  };
  auto first = blocks_.find(block.address);
  if (first != blocks_.begin() && mergeable(std::prev(first)->second, block)) --first;
  for (auto next = std::next(first);
       next != blocks_.end() && mergeable(first->second, next->second);
       next = blocks_.erase(next)) {
    RemoveFromOrder(first->second);
    RemoveFromOrder(next->second);
    if (first->second.state == BlockState::kReusable) {
      uint64_t& position = first->second.uses.front().position;
      position = std::max(position, next->second.uses.front().position);
    }
    first->second.bytes += next->second.bytes;
    AddToOrder(first->second);
  }
}

void SlabPool::MergeReusable(const StreamProgress* owner, const CapturePool* capture) {
  const auto order = reusable_.find({owner, capture});
  if (order == reusable_.end()) return;
  const SizeOrder blocks = order->second;
  for (const auto& [bytes, address] : blocks) {
    // One that was merged into an earlier one is gone.
    if (auto block = blocks_.find(address); block != blocks_.end()) {
      Merge(block->second, /*also_reusable=*/true);
    }
  }
}

void SlabPool::AddToOrder(Block& block) {
  if (block.state == BlockState::kFree) free_.emplace(block.bytes, block.address);
  if (block.state == BlockState::kReusable) {
    reusable_[{block.owner.get(), block.capture}].emplace(block.bytes, block.address);
  }
  const bool is_pending =
      block.state == BlockState::kReusable || block.state == BlockState::kWaiting;
  if (is_pending && block.capture == nullptr) pending_.insert(block.address);
}

void SlabPool::RemoveFromOrder(Block& block) {
  if (block.state == BlockState::kFree) free_.erase({block.bytes, block.address});
  if (block.state == BlockState::kReusable) {
    auto order = reusable_.find({block.owner.get(), block.capture});
    order->second.erase({block.bytes, block.address});
    if (order->second.empty()) reusable_.erase(order);
  }
  pending_.erase(block.address);
}

void SlabPool::CollectPassed() {
  const std::vector<uintptr_t> pending(pending_.begin(), pending_.end());
  for (uintptr_t address : pending) {
    if (!pending_.contains(address)) continue;  // merged into its neighbour
    Block& block = blocks_.at(address);
    RemoveFromOrder(block);
    Settle(block);
  }
}

absl::Status SlabPool::Grow(size_t bytes, size_t requested_bytes) {
  const auto room = [&] { return options_.budget_bytes - stats_.reserved_bytes; };
  const auto refuse = [&](std::string_view cause) {
    const size_t largest_free_bytes = free_.empty() ? 0 : free_.rbegin()->first;
    return absl::ResourceExhaustedError(
        absl::StrCat(label_, ": asked for ", requested_bytes, " bytes, available ",
                     std::max(room(), largest_free_bytes), " of a budget of ",
                     options_.budget_bytes, std::string(cause)));
  };
  if (bytes > options_.budget_bytes) return refuse("");
  if (bytes > room()) FreeEmptySlabs();
  if (bytes > room()) return refuse("");
  const size_t slab_room = room() / kBlockAlignment * kBlockAlignment;
  if (bytes > slab_room) return refuse("");
  const size_t slab_bytes = std::max(bytes, std::min(options_.slab_bytes, slab_room));
  if (AddSlab(slab_bytes).ok()) return absl::OkStatus();
  FreeEmptySlabs();
  const absl::Status status = AddSlab(bytes);
  if (status.ok()) return status;
  return refuse(absl::StrCat("; ", std::string(status.message())));
}

absl::Status SlabPool::AddSlab(size_t bytes) {
  ++stats_.slab_allocation_count;
  CIPHERD_ASSIGN_OR_RETURN(void* data, source_->Allocate(bytes));
  AdoptSlab(data, bytes);
  return absl::OkStatus();
}

void SlabPool::AdoptSlab(void* data, size_t bytes) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(data);
  slab_bytes_.emplace(address, bytes);
  stats_.reserved_bytes += bytes;
  source_->SetAccessible(data, bytes, false);
  Block block;
  block.address = address;
  block.slab = address;
  block.bytes = bytes;
  AddToOrder(blocks_.emplace(address, std::move(block)).first->second);
}

void SlabPool::FreeEmptySlabs() {
  for (auto slab = slab_bytes_.begin(); slab != slab_bytes_.end();) {
    const auto [address, bytes] = *slab;
    Block& block = blocks_.at(address);
    if (block.state != BlockState::kFree || block.bytes != bytes) {
      ++slab;
      continue;
    }
    RemoveFromOrder(block);
    blocks_.erase(address);
    void* const data = reinterpret_cast<void*>(address);
    source_->SetAccessible(data, bytes, true);
    source_->Free(data, bytes);
    stats_.reserved_bytes -= bytes;
    slab = slab_bytes_.erase(slab);
  }
}

void SlabPool::AddAllocated(size_t bytes) {
  stats_.allocated_bytes += bytes;
  stats_.peak_allocated_bytes = std::max(stats_.peak_allocated_bytes, stats_.allocated_bytes);
}

}  // namespace cipherd::runtime
