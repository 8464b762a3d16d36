#include "server/engine/key_residency.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/runtime/host/puppet_device.h"
#include "core/value/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/engine/freed_memory.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::Download;
using ::cipherd::testing::SmallPools;
using ::testing::Each;
using ::testing::ElementsAreArray;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

constexpr int64_t kSetBytes = 2 * kWordCount * 8;
constexpr int64_t kHostSets = 9;

// Room for two sets on the device, on streams that the test steps.
class KeyResidencyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, runtime::host::PuppetDevice::Open({}, SmallPools()));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream("transfer"));
    residency_.emplace(*device_, 2 * kSetBytes, [this] { ++release_count_; });
    ASSERT_OK_AND_ASSIGN(
        store_, KeyStore::Open(*device_,
                               {.budget_bytes = kHostSets * kSetBytes, .max_set_bytes = kSetBytes},
                               [this](const KeySetInfo& keys) { residency_->Forget(keys); }));
  }

  KeySetRef Put(int number) {
    return PutTestKeys(*store_, "alice", TestKeySetId(number), number).value();
  }
  // Pins, loads and reads back the first key.
  std::vector<uint64_t> ReadFirstKey(KeyResidency::Pin& pin) {
    EXPECT_OK(residency_->EnsureLoaded(pin, *stream_));
    return Download<uint64_t>(pin.device_keys().begin()->second.data.data(), kWordCount, *stream_)
        .value();
  }

  std::vector<uint64_t> FoundAt(const void* address) {
    const std::unique_ptr<runtime::Stream> stream = device_->CreateStream("next owner").value();
    const value::Tensor taken = TakeAt(address, [&] {
      return value::Tensor::AllocateOn(*stream, value::DType::kUint64, {kWordCount});
    });
    return Download<uint64_t>(taken.data(), kWordCount, *stream).value();
  }
  std::unique_ptr<runtime::host::PuppetDevice> device_;
  std::unique_ptr<runtime::Stream> stream_;
  int release_count_ = 0;

  std::unique_ptr<KeyStore> store_;
  std::optional<KeyResidency> residency_;
};

TEST_F(KeyResidencyTest, ASetIsCopiedOnceAndStays) {
  const KeySetRef keys = Put(1);
  for (int i = 0; i < 3; ++i) {
    std::optional<KeyResidency::Pin> pin = residency_->TryPin(keys);
    ASSERT_TRUE(pin.has_value());
    EXPECT_THAT(ReadFirstKey(*pin), ElementsAreArray(KeyWords(1, 0)));
  }
  EXPECT_EQ(residency_->stats().loads, 1u);
  EXPECT_EQ(residency_->stats().hits, 2u);
  EXPECT_EQ(residency_->stats().used_bytes, kSetBytes);
  EXPECT_EQ(release_count_, 3);
}

TEST_F(KeyResidencyTest, ASetIsHereFromItsPinOnAndStaysOnlyIfItWasLoaded) {
  const KeySetRef keys = Put(1);
  EXPECT_FALSE(residency_->StandingOf(*keys->info).is_here);
  EXPECT_TRUE(residency_->StandingOf(*keys->info).has_room);
  std::optional<KeyResidency::Pin> pin = residency_->TryPin(keys);
  EXPECT_TRUE(residency_->StandingOf(*keys->info).is_here) << "on its way";
  pin.reset();
  EXPECT_FALSE(residency_->StandingOf(*keys->info).is_here) << "nobody has loaded it";
  EXPECT_TRUE(residency_->StandingOf(*keys->info).has_room);
  pin = residency_->TryPin(keys);
  ReadFirstKey(*pin);
  pin.reset();
  EXPECT_TRUE(residency_->StandingOf(*keys->info).is_here);
  EXPECT_EQ(residency_->StandingOf(*keys->info).used_bytes, kSetBytes);
}

TEST_F(KeyResidencyTest, WhatIsPinnedLeavesNoRoomForOthers) {
  const KeySetRef keys[] = {Put(1), Put(2), Put(3)};
  std::optional<KeyResidency::Pin> first = residency_->TryPin(keys[0]);
  std::optional<KeyResidency::Pin> again = residency_->TryPin(keys[0]);
  std::optional<KeyResidency::Pin> second = residency_->TryPin(keys[1]);
  EXPECT_FALSE(residency_->StandingOf(*keys[2]->info).has_room);
  EXPECT_FALSE(residency_->TryPin(keys[2]).has_value());
  again.reset();
  EXPECT_FALSE(residency_->StandingOf(*keys[2]->info).has_room) << "pinned once yet";
  first.reset();
  EXPECT_TRUE(residency_->StandingOf(*keys[2]->info).has_room);
  EXPECT_TRUE(residency_->TryPin(keys[2]).has_value());
}

TEST_F(KeyResidencyTest, LoadingEnqueuesAndDoesNotWait) {
  std::optional<KeyResidency::Pin> pin = residency_->TryPin(Put(1));
  ASSERT_OK(residency_->EnsureLoaded(*pin, *stream_));
  EXPECT_GT(device_->PendingCount(*stream_), 0u);
  device_->RunAll();
  ASSERT_OK_AND_ASSIGN(const bool loaded, pin->loaded_event().Query());
  EXPECT_TRUE(loaded);
}

TEST_F(KeyResidencyTest, TheLeastRecentlyUsedSetMakesRoom) {
  const KeySetRef a = Put(1), b = Put(2), c = Put(3);
  for (const KeySetRef& keys : {a, b, a}) {
    std::optional<KeyResidency::Pin> pin = residency_->TryPin(keys);
    ASSERT_OK(residency_->EnsureLoaded(*pin, *stream_));
  }
  std::optional<KeyResidency::Pin> pin = residency_->TryPin(c);
  ASSERT_TRUE(pin.has_value());
  EXPECT_THAT(ReadFirstKey(*pin), ElementsAreArray(KeyWords(3, 0)));
  EXPECT_EQ(residency_->stats().evictions, 1u);
  const uint64_t loads = residency_->stats().loads;
  std::optional<KeyResidency::Pin> again = residency_->TryPin(a);
  EXPECT_THAT(ReadFirstKey(*again), ElementsAreArray(KeyWords(1, 0)));
  EXPECT_EQ(residency_->stats().loads, loads) << "the one used last was evicted";
}

TEST_F(KeyResidencyTest, APinnedSetIsNotEvicted) {
  const KeySetRef a = Put(1), b = Put(2), c = Put(3);
  std::optional<KeyResidency::Pin> pin_a = residency_->TryPin(a);
  std::optional<KeyResidency::Pin> pin_b = residency_->TryPin(b);
  const std::vector<uint64_t> before = ReadFirstKey(*pin_a);
  EXPECT_FALSE(residency_->TryPin(c).has_value());
  EXPECT_EQ(residency_->stats().used_bytes, 2 * kSetBytes);
  EXPECT_EQ(ReadFirstKey(*pin_a), before);

  pin_b->Release();
  std::optional<KeyResidency::Pin> pin_c = residency_->TryPin(c);
  ASSERT_TRUE(pin_c.has_value());
  EXPECT_THAT(ReadFirstKey(*pin_c), ElementsAreArray(KeyWords(3, 0)));
  EXPECT_EQ(ReadFirstKey(*pin_a), before);
}

TEST_F(KeyResidencyTest, TheBudgetHoldsAndMemoryComesBack) {
  const size_t before = device_->device_memory_stats().allocated_bytes;
  for (int i = 1; i <= 9; ++i) {
    std::optional<KeyResidency::Pin> pin = residency_->TryPin(Put(i));
    ASSERT_OK(residency_->EnsureLoaded(*pin, *stream_));
    EXPECT_LE(residency_->stats().used_bytes, 2 * kSetBytes);
  }
  for (int i = 1; i <= 9; ++i) ASSERT_OK(DropTestKeys(*store_, "alice", TestKeySetId(i)));
  EXPECT_EQ(residency_->stats().used_bytes, 0);
  ASSERT_OK(device_->Synchronize());
  EXPECT_EQ(device_->device_memory_stats().allocated_bytes, before);
  EXPECT_EQ(store_->used_bytes(), 0);
}

TEST_F(KeyResidencyTest, ASetThatNobodyPinsDoesNotKeepItsHostMemory) {
  KeySetRef keys = Put(1);
  {
    std::optional<KeyResidency::Pin> pin = residency_->TryPin(keys);
    ASSERT_OK(residency_->EnsureLoaded(*pin, *stream_));
    device_->RunAll();
    keys.reset();
    for (int i = 2; i <= kHostSets + 1; ++i) Put(i);
    // Pinned, it outlasted the others.
    EXPECT_OK(store_->Find("alice", TestKeySetId(1)));
    EXPECT_THAT(store_->Find("alice", TestKeySetId(2)),
                ::cipherd::testing::StatusIs(absl::StatusCode::kNotFound));
  }
  for (int i = 2; i <= kHostSets + 1; ++i) Put(i);
  EXPECT_THAT(store_->Find("alice", TestKeySetId(1)),
              ::cipherd::testing::StatusIs(absl::StatusCode::kNotFound));
  // What has become unknown is on no device either.
  EXPECT_EQ(residency_->stats().used_bytes, 0);
}

TEST_F(KeyResidencyTest, ADroppedSetLeavesWithItsLastPin) {
  KeySetRef keys = Put(1);
  std::optional<KeyResidency::Pin> first = residency_->TryPin(keys);
  std::optional<KeyResidency::Pin> second = residency_->TryPin(keys);
  keys.reset();
  ASSERT_OK(residency_->EnsureLoaded(*first, *stream_));
  ASSERT_OK(DropTestKeys(*store_, "alice", TestKeySetId(1)));
  first->Release();
  EXPECT_THAT(ReadFirstKey(*second), ElementsAreArray(KeyWords(1, 0)));
  EXPECT_EQ(store_->used_bytes(), kSetBytes);
  second->Release();
  EXPECT_EQ(residency_->stats().used_bytes, 0);
  EXPECT_EQ(store_->used_bytes(), 0);
}

TEST_F(KeyResidencyTest, ASetDroppedBeforeItsFirstPinDoesNotStay) {
  KeySetRef keys = Put(1);
  ASSERT_OK(DropTestKeys(*store_, "alice", TestKeySetId(1)));
  std::optional<KeyResidency::Pin> pin = residency_->TryPin(keys);
  EXPECT_THAT(ReadFirstKey(*pin), ElementsAreArray(KeyWords(1, 0)));
  pin->Release();
  EXPECT_EQ(residency_->stats().used_bytes, 0);
}

TEST_F(KeyResidencyTest, HostMemoryStaysUntilItIsCopied) {
  {
    std::optional<KeyResidency::Pin> pin = residency_->TryPin(Put(1));
    ASSERT_OK(residency_->EnsureLoaded(*pin, *stream_));
  }
  // The copies are still to come.
  EXPECT_GT(device_->PendingCount(*stream_), 0u);
  for (int i = 2; i <= kHostSets + 1; ++i) Put(i);
  ASSERT_OK_AND_ASSIGN(KeySetRef keys, AwaitKeys(*store_, "alice", TestKeySetId(1)));
  {
    std::optional<KeyResidency::Pin> pin = residency_->TryPin(keys);
    EXPECT_THAT(ReadFirstKey(*pin), ElementsAreArray(KeyWords(1, 0)));
    EXPECT_EQ(residency_->stats().loads, 1u);
  }
  keys.reset();
  for (int i = 2; i <= kHostSets + 1; ++i) Put(i);
  EXPECT_THAT(store_->Find("alice", TestKeySetId(1)),
              ::cipherd::testing::StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(KeyResidencyTest, HostMemoryGoesWithTheNextPinWhereItWasCopiedLate) {
  const KeySetRef other = Put(2);
  {
    std::optional<KeyResidency::Pin> pin = residency_->TryPin(Put(1));
    ASSERT_OK(residency_->EnsureLoaded(*pin, *stream_));
  }
  device_->RunAll();
  std::optional<KeyResidency::Pin> pin = residency_->TryPin(other);
  for (int i = 3; i <= kHostSets + 2; ++i) Put(i);
  EXPECT_THAT(store_->Find("alice", TestKeySetId(1)),
              ::cipherd::testing::StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(KeyResidencyTest, ADroppedSetIsWipedOnceItHasBeenCopied) {
  const void* address = nullptr;
  const KeySetRef keys = Put(1);
  {
    std::optional<KeyResidency::Pin> pin = residency_->TryPin(keys);
    ASSERT_OK(residency_->EnsureLoaded(*pin, *stream_));
    address = pin->device_keys().begin()->second.data.data();
  }
  // The copies are still to come.
  EXPECT_GT(device_->PendingCount(*stream_), 0u);
  ASSERT_OK(DropTestKeys(*store_, "alice", TestKeySetId(1)));
  device_->RunAll();
  EXPECT_THAT(FoundAt(address), Each(0));
}

TEST_F(KeyResidencyTest, ASetThatMadeRoomIsWiped) {
  const void* address = nullptr;
  for (int i : {1, 2}) {
    std::optional<KeyResidency::Pin> pin = residency_->TryPin(Put(i));
    ReadFirstKey(*pin);
    if (i == 1) address = pin->device_keys().begin()->second.data.data();
  }
  ASSERT_OK_AND_ASSIGN(const auto other, device_->CreateStream("other"));
  std::optional<KeyResidency::Pin> pin = residency_->TryPin(Put(3));
  ASSERT_OK(residency_->EnsureLoaded(*pin, *other));
  EXPECT_NE(pin->device_keys().begin()->second.data.data(), address) << "before it is wiped";
  device_->RunAll();
  EXPECT_THAT(FoundAt(address), Each(0));
}

TEST_F(KeyResidencyTest, WhatIsHereAtTheEndIsWiped) {
  const void* address = nullptr;
  {
    std::optional<KeyResidency::Pin> pin = residency_->TryPin(Put(1));
    ReadFirstKey(*pin);
    address = pin->device_keys().begin()->second.data.data();
  }
  residency_.reset();
  // Nothing is left to be run.
  EXPECT_THAT(FoundAt(address), Each(0));
  residency_.emplace(*device_, 2 * kSetBytes);
}

TEST_F(KeyResidencyTest, WhereMemoryIsShortASetWaitsForTheWipingOfAnother) {
  runtime::DeviceOptions pools = SmallPools();
  pools.device_memory.slab_bytes = pools.device_memory.budget_bytes = kSetBytes;
  ASSERT_OK_AND_ASSIGN(const auto small, runtime::host::PuppetDevice::Open({}, pools));
  KeyResidency residency(*small, kSetBytes);
  ASSERT_OK_AND_ASSIGN(const auto first, small->CreateStream("first"));
  ASSERT_OK_AND_ASSIGN(const auto second, small->CreateStream("second"));
  {
    std::optional<KeyResidency::Pin> pin = residency.TryPin(Put(1));
    ASSERT_OK(residency.EnsureLoaded(*pin, *first));
    small->RunAll();
  }
  std::optional<KeyResidency::Pin> pin = residency.TryPin(Put(2));
  ASSERT_OK(residency.EnsureLoaded(*pin, *second));
  const void* const words = pin->device_keys().begin()->second.data.data();
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> read,
                       Download<uint64_t>(words, kWordCount, *second));
  EXPECT_THAT(read, ElementsAreArray(KeyWords(2, 0)));
}

}  // namespace
}  // namespace cipherd::engine
