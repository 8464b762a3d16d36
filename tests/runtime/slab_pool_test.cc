#include "core/runtime/slab_pool.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/runtime/host_memory_limit.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::runtime {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
constexpr size_t kSlabBytes = 4096;

// What the source of a pool was asked for. Can be told to have no more.
struct SourceLog {
  std::mutex mu;
  std::map<void*, size_t> slabs;
  size_t capacity_bytes = SIZE_MAX;
  size_t held_bytes = 0;
  int free_count = 0;
};

class FakeSource final : public SlabSource {
 public:
  explicit FakeSource(SourceLog& log) : log_(log) {}

  absl::StatusOr<void*> Allocate(size_t bytes) override {
    EXPECT_EQ(bytes % 256, 0u);
    std::lock_guard lock(log_.mu);
    if (bytes > log_.capacity_bytes - log_.held_bytes) {
      return absl::ResourceExhaustedError("the fake has no more");
    }
    void* const slab = std::aligned_alloc(256, bytes);
    log_.slabs[slab] = bytes;
    log_.held_bytes += bytes;
    return slab;
  }

  void Free(void* slab, size_t bytes) override {
    ASSERT_EQ(log_.slabs.at(slab), bytes);
    log_.slabs.erase(slab);
    log_.held_bytes -= bytes;
    ++log_.free_count;
    std::free(slab);
  }

 private:
  SourceLog& log_;
};

// A stream whose work the test enqueues and completes by hand.
class FakeProgress final : public StreamProgress {
 public:
  uint64_t Mark() override { return enqueued_; }
  bool HasPassed(uint64_t position) override { return completed_ >= position; }

  void Enqueue() { ++enqueued_; }
  void CompleteAll() { completed_ = enqueued_; }

 private:
  uint64_t enqueued_ = 0;
  uint64_t completed_ = 0;
};

class SlabPoolTest : public ::testing::Test {
 protected:
  void Open(size_t budget_bytes, size_t initial_bytes = 0) {
    PoolOptions options;
    options.slab_bytes = kSlabBytes;
    options.budget_bytes = budget_bytes;
    options.initial_bytes = initial_bytes;
    pool_ = SlabPool::Create("test memory", MemorySpace::kDevice, nullptr, options,
                             std::make_unique<FakeSource>(log_))
                .value();
  }
  StoragePtr New(size_t bytes, const std::shared_ptr<StreamProgress>& stream) {
    return pool_->Allocate(bytes, stream).value();
  }

  SourceLog log_;
  std::shared_ptr<FakeProgress> a_ = std::make_shared<FakeProgress>();
  std::shared_ptr<FakeProgress> b_ = std::make_shared<FakeProgress>();
  std::shared_ptr<SlabPool> pool_;
};

TEST_F(SlabPoolTest, BlocksAreAlignedAndDisjointAndCountedRounded) {
  Open(kSlabBytes);
  const StoragePtr first = New(1, a_);
  const StoragePtr second = New(257, a_);
  const auto first_address = reinterpret_cast<uintptr_t>(first->data());
  const auto second_address = reinterpret_cast<uintptr_t>(second->data());
  EXPECT_EQ(first_address % 256, 0u);
  EXPECT_EQ(second_address % 256, 0u);
  EXPECT_GE(std::max(first_address, second_address) - std::min(first_address, second_address),
            256u);
  EXPECT_EQ(pool_->stats().allocated_bytes, 256u + 512u);
  EXPECT_EQ(pool_->stats().reserved_bytes, kSlabBytes);
  EXPECT_EQ(log_.slabs.size(), 1u);
}

TEST_F(SlabPoolTest, InitialBytesAreReservedAtOnceAndServeRequests) {
  Open(4 * kSlabBytes, 2 * kSlabBytes + 256);
  EXPECT_EQ(pool_->stats().reserved_bytes, 2 * kSlabBytes + 256);
  EXPECT_EQ(pool_->stats().slab_allocation_count, 3u);
  const StoragePtr first = New(kSlabBytes, a_);
  const StoragePtr second = New(kSlabBytes, a_);
  EXPECT_EQ(pool_->stats().slab_allocation_count, 3u);
}

TEST_F(SlabPoolTest, InitialSlabsAreTakenAtOnce) {
  // Each allocation waits for another one under way.
  class MeetingSource final : public SlabSource {
   public:
    absl::StatusOr<void*> Allocate(size_t bytes) override {
      std::unique_lock lock(mu_);
      ++arrivals_;
      met_.notify_all();
      met_.wait(lock, [this] { return arrivals_ >= 4; });
      return std::aligned_alloc(256, bytes);
    }
    void Free(void* slab, size_t) override { std::free(slab); }

   private:
    std::mutex mu_;
    std::condition_variable met_;
    int arrivals_ = 0;
  };
  PoolOptions options;
  options.slab_bytes = kSlabBytes;
  options.initial_bytes = 4 * kSlabBytes;
  ASSERT_OK_AND_ASSIGN(const auto pool,
                       SlabPool::Create("test memory", MemorySpace::kPinned, nullptr, options,
                                        std::make_unique<MeetingSource>()));
  EXPECT_EQ(pool->stats().reserved_bytes, 4 * kSlabBytes);
}

TEST_F(SlabPoolTest, AStartThatFailsHalfWayGivesEverythingBack) {
  log_.capacity_bytes = 2 * kSlabBytes;
  PoolOptions options;
  options.slab_bytes = kSlabBytes;
  options.initial_bytes = 9 * kSlabBytes;
  EXPECT_THAT(SlabPool::Create("test memory", MemorySpace::kDevice, nullptr, options,
                               std::make_unique<FakeSource>(log_)),
              StatusIs(kExhausted));
  EXPECT_TRUE(log_.slabs.empty());
}

TEST_F(SlabPoolTest, MoreThanTheMachineHasIsNotPinned) {
  PoolOptions options;
  options.budget_bytes = options.initial_bytes = size_t{1} << 60;
  options.slab_bytes = size_t{1} << 30;
  EXPECT_THAT(SlabPool::Create("test memory", MemorySpace::kPinned, nullptr, options,
                               std::make_unique<FakeSource>(log_)),
              StatusIs(kExhausted, HasSubstr("left")));
  EXPECT_TRUE(log_.slabs.empty());
}

TEST(HostMemoryLimitTest, TheLeastOfWhatIsSaidCounts) {
  EXPECT_EQ(ParseMemAvailable("MemTotal:  9 kB\nMemAvailable:       7 kB\n"), 7 * 1024u);
  EXPECT_EQ(ParseMemAvailable("MemTotal:  9 kB\n"), std::nullopt);
  EXPECT_EQ(ParseGroupHeadroom("1000\n", "300\n"), 700u);
  EXPECT_EQ(ParseGroupHeadroom("1000\n", "3000\n"), 0u);
  EXPECT_EQ(ParseGroupHeadroom("max\n", "300\n"), std::nullopt);
  EXPECT_GT(AvailableHostBytes().value(), 0u);
}

TEST_F(SlabPoolTest, ALargeBlockGetsASlabOfExactlyItsSize) {
  Open(10 * kSlabBytes);
  const StoragePtr large = New(2 * kSlabBytes + 100, a_);
  EXPECT_EQ(pool_->stats().reserved_bytes, 2 * kSlabBytes + 256);
  EXPECT_EQ(log_.slabs.count(large->data()), 1u);
}

TEST_F(SlabPoolTest, TheBestFitIsTaken) {
  Open(kSlabBytes);
  StoragePtr hole_of_1024 = New(1024, a_);
  const StoragePtr wall_1 = New(256, a_);
  StoragePtr hole_of_512 = New(512, a_);
  const StoragePtr wall_2 = New(256, a_);
  void* const best = hole_of_512->data();
  hole_of_1024.reset();
  hole_of_512.reset();
  const StoragePtr block = New(400, a_);
  EXPECT_EQ(block->data(), best);
}

TEST_F(SlabPoolTest, FreeNeighboursMergeInEveryOrderOfRelease) {
  const std::vector<std::vector<int>> orders{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}};
  for (const std::vector<int>& order : orders) {
    Open(kSlabBytes);
    std::vector<StoragePtr> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(New(kSlabBytes / 4, a_));
    for (int i : order) blocks[i].reset();
    EXPECT_OK(pool_->Allocate(3 * kSlabBytes / 4, b_));
    blocks.clear();
    EXPECT_OK(pool_->Allocate(kSlabBytes, b_));
  }
}

TEST_F(SlabPoolTest, BlocksThatOneStreamMayReuseMergeForIt) {
  Open(kSlabBytes);
  StoragePtr first = New(kSlabBytes / 2, a_);
  StoragePtr second = New(kSlabBytes / 2, a_);
  a_->Enqueue();
  first.reset();
  a_->Enqueue();
  second.reset();
  EXPECT_THAT(pool_->Allocate(kSlabBytes, b_), StatusIs(kExhausted));
  EXPECT_OK(pool_->Allocate(kSlabBytes, a_));
}

TEST_F(SlabPoolTest, NeighboursOfOneStreamArePassedOnEachAtItsOwnTime) {
  Open(kSlabBytes);
  StoragePtr first = New(kSlabBytes / 2, a_);
  StoragePtr second = New(kSlabBytes / 2, a_);
  a_->Enqueue();
  first.reset();
  a_->CompleteAll();
  a_->Enqueue();
  second.reset();
  EXPECT_THAT(pool_->Allocate(kSlabBytes, b_), StatusIs(kExhausted));
  EXPECT_OK(pool_->Allocate(kSlabBytes / 2, b_));
  a_->CompleteAll();
  EXPECT_OK(pool_->Allocate(kSlabBytes, b_));
}

TEST_F(SlabPoolTest, NeighboursMergedForOneStreamWaitForTheLaterPosition) {
  Open(kSlabBytes);
  StoragePtr first = New(kSlabBytes / 2, a_);
  StoragePtr second = New(kSlabBytes / 2, a_);
  a_->Enqueue();
  first.reset();
  a_->Enqueue();
  second.reset();
  // Too large in any case, but what a_ may reuse is merged on the way.
  EXPECT_THAT(pool_->Allocate(kSlabBytes + 1, a_), StatusIs(kExhausted));
  EXPECT_THAT(pool_->Allocate(kSlabBytes / 2, b_), StatusIs(kExhausted));
  a_->CompleteAll();
  EXPECT_OK(pool_->Allocate(kSlabBytes, b_));
}

TEST_F(SlabPoolTest, TheRestOfASplitBlockStillWaitsForItsStream) {
  Open(kSlabBytes);
  StoragePtr whole = New(kSlabBytes, a_);
  a_->Enqueue();
  whole.reset();
  const StoragePtr half = New(kSlabBytes / 2, a_);
  EXPECT_THAT(pool_->Allocate(kSlabBytes / 2, b_), StatusIs(kExhausted));
  a_->CompleteAll();
  EXPECT_OK(pool_->Allocate(kSlabBytes / 2, b_));
}

TEST_F(SlabPoolTest, TheBudgetHoldsAndTheLastSlabIsCutToIt) {
  Open(kSlabBytes + 1024);
  const StoragePtr first = New(kSlabBytes, a_);
  const StoragePtr second = New(512, a_);
  EXPECT_EQ(pool_->stats().reserved_bytes, kSlabBytes + 1024);
  EXPECT_THAT(pool_->Allocate(513, a_),
              StatusIs(kExhausted, HasSubstr("test memory: asked for 513 bytes, available 512 of a "
                                             "budget of 5120")));
  EXPECT_EQ(pool_->stats().reserved_bytes, kSlabBytes + 1024);
}

TEST_F(SlabPoolTest, EmptySlabsMakeRoomForALargerOneBeforeARefusal) {
  Open(2 * kSlabBytes);
  New(kSlabBytes, a_).reset();
  const StoragePtr large = New(2 * kSlabBytes, a_);
  EXPECT_EQ(log_.free_count, 1);
  EXPECT_EQ(pool_->stats().reserved_bytes, 2 * kSlabBytes);
}

TEST_F(SlabPoolTest, ASourceThatHasNoMoreIsARefusalAfterTrimming) {
  Open(100 * kSlabBytes);
  log_.capacity_bytes = kSlabBytes + 1024;
  StoragePtr first = New(kSlabBytes, a_);
  // A whole slab cannot be had, a slab for this block can.
  const StoragePtr second = New(1024, a_);
  EXPECT_EQ(log_.held_bytes, kSlabBytes + 1024);
  EXPECT_THAT(pool_->Allocate(1024, a_), StatusIs(kExhausted, HasSubstr("the fake has no more")));
  first.reset();
  EXPECT_OK(pool_->Allocate(1024, a_));
}

TEST_F(SlabPoolTest, TrimFreesEmptySlabsOnly) {
  Open(10 * kSlabBytes);
  const StoragePtr kept = New(256, a_);
  StoragePtr pending = New(kSlabBytes, a_);
  StoragePtr empty = New(2 * kSlabBytes, a_);
  empty.reset();
  a_->Enqueue();
  pending.reset();
  pool_->Trim();
  EXPECT_EQ(pool_->stats().reserved_bytes, 2 * kSlabBytes);
  a_->CompleteAll();
  pool_->Trim();
  EXPECT_EQ(pool_->stats().reserved_bytes, kSlabBytes);
}

TEST_F(SlabPoolTest, StatsCountWaitingBlocksAsAllocatedAndRememberThePeak) {
  Open(10 * kSlabBytes);
  StoragePtr first = New(1024, a_);
  StoragePtr second = New(1024, a_);
  a_->Enqueue();
  first.reset();
  EXPECT_EQ(pool_->stats().allocated_bytes, 2048u);
  a_->CompleteAll();
  EXPECT_EQ(pool_->stats().allocated_bytes, 1024u);
  second.reset();
  EXPECT_EQ(pool_->stats().allocated_bytes, 0u);
  EXPECT_EQ(pool_->stats().peak_allocated_bytes, 2048u);
}

TEST_F(SlabPoolTest, LocateTellsLiveBlocksFromFreeOnesAndFromOtherMemory) {
  using Kind = SlabPool::Location::Kind;
  Open(kSlabBytes);
  StoragePtr block = New(1000, a_);
  const auto* const bytes = static_cast<const uint8_t*>(block->data());
  const int elsewhere = 0;
  EXPECT_EQ(pool_->Locate(&elsewhere, 1).kind, Kind::kOutside);
  EXPECT_EQ(pool_->Locate(nullptr, 1).kind, Kind::kOutside);
  EXPECT_EQ(pool_->Locate(bytes + kSlabBytes, 1).kind, Kind::kOutside);
  EXPECT_EQ(pool_->Locate(bytes, 1000).kind, Kind::kLive);
  EXPECT_EQ(pool_->Locate(bytes + 999, 1).kind, Kind::kLive);
  EXPECT_EQ(pool_->Locate(bytes, 1001).kind, Kind::kNotLive);
  EXPECT_EQ(pool_->Locate(bytes + 1024, 1).kind, Kind::kNotLive);
  const SlabPool::Location location = pool_->Locate(bytes + 10, 1);
  EXPECT_EQ(location.block, block->data());
  EXPECT_EQ(location.storage.lock(), block);
  block.reset();
  EXPECT_TRUE(location.storage.expired());
  EXPECT_EQ(pool_->Locate(bytes, 1).kind, Kind::kNotLive);
}

TEST_F(SlabPoolTest, ACaptureReturnsItsBlocksAtItsEnd) {
  Open(kSlabBytes);
  auto capture = pool_->OpenCapture();
  StoragePtr kept = pool_->Allocate(1024, a_, capture.get()).value();
  StoragePtr dropped = pool_->Allocate(1024, a_, capture.get()).value();
  dropped.reset();
  EXPECT_EQ(capture->bytes(), 2048u);
  EXPECT_EQ(pool_->stats().allocated_bytes, 2048u);
  capture.reset();
  EXPECT_EQ(pool_->stats().allocated_bytes, 1024u);
  kept.reset();
  EXPECT_EQ(pool_->stats().allocated_bytes, 0u);
  EXPECT_OK(pool_->Allocate(kSlabBytes, b_));
}

TEST_F(SlabPoolTest, HolesElsewhereDoNotMakeACaptureLarger) {
  Open(kSlabBytes);
  StoragePtr hole = New(256, a_);
  const StoragePtr behind_it = New(256, a_);
  hole.reset();
  const auto capture = pool_->OpenCapture();
  StoragePtr dropped = pool_->Allocate(1024, a_, capture.get()).value();
  dropped.reset();
  // The hole would fit best.
  const StoragePtr next = pool_->Allocate(256, a_, capture.get()).value();
  EXPECT_EQ(capture->bytes(), 1024u);
}

TEST_F(SlabPoolTest, StorageMayOutliveTheHandleOfItsPool) {
  Open(kSlabBytes);
  StoragePtr block = New(1024, a_);
  pool_.reset();
  EXPECT_EQ(log_.slabs.size(), 1u);
  block.reset();
  EXPECT_EQ(log_.slabs.size(), 0u);
}

// Random traffic of three streams: no two live blocks overlap, and no block is handed to a stream
// while another still has work on it.
TEST_F(SlabPoolTest, RandomTrafficNeverHandsOutWhatIsInUse) {
  Open(64 * kSlabBytes);
  std::mt19937_64 random(20240229);
  std::vector<std::shared_ptr<FakeProgress>> streams{a_, b_, std::make_shared<FakeProgress>()};
  struct Owned {
    StoragePtr storage;
    int stream;
  };
  std::vector<Owned> live;
  // For each byte range that was let go with work outstanding: the stream and position to pass.
  struct InFlight {
    uintptr_t begin, end;
    int stream;
    uint64_t position;
  };
  std::vector<InFlight> in_flight;
  for (int step = 0; step < 20000; ++step) {
    const int stream = static_cast<int>(random() % streams.size());
    const uint64_t action = random() % 16;
    if (action < 7) {
      const size_t bytes = 1 + random() % (random() % 8 == 0 ? 3 * kSlabBytes : 1500);
      auto block = pool_->Allocate(bytes, streams[stream]);
      if (!block.ok()) continue;
      const uintptr_t begin = reinterpret_cast<uintptr_t>((*block)->data());
      for (const Owned& other : live) {
        const uintptr_t other_begin = reinterpret_cast<uintptr_t>(other.storage->data());
        ASSERT_TRUE(begin >= other_begin + other.storage->bytes() || other_begin >= begin + bytes);
      }
      for (const InFlight& use : in_flight) {
        if (use.stream == stream || streams[use.stream]->HasPassed(use.position)) continue;
        ASSERT_TRUE(begin >= use.end || use.begin >= begin + bytes);
      }
      live.push_back({*std::move(block), stream});
    } else if (action < 13 && !live.empty()) {
      const size_t index = random() % live.size();
      Owned owned = std::move(live[index]);
      live.erase(live.begin() + static_cast<ptrdiff_t>(index));
      const uintptr_t begin = reinterpret_cast<uintptr_t>(owned.storage->data());
      in_flight.push_back(
          {begin, begin + owned.storage->bytes(), owned.stream, streams[owned.stream]->Mark()});
    } else if (action < 15) {
      streams[stream]->Enqueue();
    } else {
      streams[stream]->CompleteAll();
      std::erase_if(in_flight, [&](const InFlight& use) {
        return streams[use.stream]->HasPassed(use.position);
      });
    }
  }
  live.clear();
  for (const auto& stream : streams) stream->CompleteAll();
  EXPECT_EQ(pool_->stats().allocated_bytes, 0u);
  pool_->Trim();
  EXPECT_EQ(log_.held_bytes, 0u);
}

}  // namespace
}  // namespace cipherd::runtime
