#include <cstdint>

#include "tests/conformance/device_test.h"

namespace cipherd::runtime {
namespace {

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

class MemoryTest : public DeviceTest {};
INSTANTIATE_ON_DEVICES(MemoryTest);

class ReuseTest : public OneSlabTest {};
INSTANTIATE_ON_DEVICES(ReuseTest);

TEST_P(MemoryTest, R15_BlocksSayWhatTheyAre) {
  auto stream = NewStream("compute");
  const StoragePtr block = NewBlock(*stream, 1000);
  EXPECT_EQ(block->bytes(), 1000u);
  EXPECT_EQ(block->space(), MemorySpace::kDevice);
  EXPECT_EQ(block->device(), device_.get());
  EXPECT_FALSE(block->is_host());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data()) % 256, 0u);

  const StoragePtr pinned = NewPinned(0, 1000);
  EXPECT_EQ(pinned->space(), MemorySpace::kPinned);
  EXPECT_EQ(pinned->device(), device_.get());
  EXPECT_TRUE(pinned->is_host());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned->data()) % 256, 0u);

  const StoragePtr none = NewBlock(*stream, 0);
  EXPECT_EQ(none->data(), nullptr);
  EXPECT_EQ(none->bytes(), 0u);
  none->RecordUse(*stream);
}

TEST_P(ReuseTest, R16_TheSameStreamReusesADroppedBlockAtOnce) {
  auto stream = NewStream("compute");
  const StoragePtr pinned = NewPinned(0, kSlabBytes);
  StoragePtr first = NewBlock(*stream, kSlabBytes);
  StreamHold hold = HoldStream(*stream);
  void* const address = first->data();
  ASSERT_OK(Fill(*stream, first, 1));
  ASSERT_OK(Copy(*stream, pinned, first));
  first.reset();
  ASSERT_OK_AND_ASSIGN(StoragePtr second, device_->Allocate(kSlabBytes, *stream));
  EXPECT_EQ(second->data(), address);
  ASSERT_OK(Fill(*stream, second, 2));
  hold.Release();
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 1));
}

TEST_P(ReuseTest, R17_AnotherStreamGetsADroppedBlockOnlyAfterItsStreamHasPassed) {
  auto stream = NewStream("compute");
  auto other = NewStream("other");
  StoragePtr block = NewBlock(*stream, kSlabBytes);
  StreamHold hold = HoldStream(*stream);
  ASSERT_OK(Fill(*stream, block, 1));
  block.reset();
  EXPECT_THAT(device_->Allocate(kSlabBytes, *other), StatusIs(kExhausted));
  EXPECT_EQ(device_->device_memory_stats().allocated_bytes, kSlabBytes);
  hold.Release();
  ASSERT_OK(stream->Synchronize());
  EXPECT_EQ(device_->device_memory_stats().allocated_bytes, 0u);
  EXPECT_OK(device_->Allocate(kSlabBytes, *other));
}

TEST_P(ReuseTest, R18_ABlockIsKeptForEveryStreamNamedToRecordUse) {
  auto stream = NewStream("compute");
  auto reader = NewStream("reader");
  StoragePtr block = NewBlock(*stream, kSlabBytes);
  StreamHold hold = HoldStream(*reader);
  block->RecordUse(*reader);
  block.reset();
  EXPECT_THAT(device_->Allocate(kSlabBytes, *stream), StatusIs(kExhausted));
  EXPECT_THAT(device_->Allocate(kSlabBytes, *reader), StatusIs(kExhausted));
  hold.Release();
  ASSERT_OK(reader->Synchronize());
  EXPECT_OK(device_->Allocate(kSlabBytes, *stream));
}

TEST_P(ReuseTest, R18_WhatIsEnqueuedAfterTheDropDoesNotKeepTheBlock) {
  auto stream = NewStream("compute");
  auto other = NewStream("other");
  StoragePtr block = NewBlock(*stream, kSlabBytes);
  ASSERT_OK(Fill(*stream, block, 1));
  block.reset();
  ASSERT_OK(stream->Synchronize());
  StreamHold hold = HoldStream(*stream);
  EXPECT_OK(device_->Allocate(kSlabBytes, *other));
}

TEST_P(ReuseTest, R19_PinnedMemoryIsKeptForEveryStreamNamedToRecordUse) {
  auto first = NewStream("first");
  auto second = NewStream("second");
  StoragePtr pinned = NewPinned(1, kSlabBytes);
  StreamHold hold_first = HoldStream(*first);
  pinned->RecordUse(*first);
  pinned->RecordUse(*second);
  pinned.reset();
  EXPECT_THAT(device_->AllocatePinned(kSlabBytes), StatusIs(kExhausted));
  hold_first.Release();
  ASSERT_OK(first->Synchronize());
  ASSERT_OK(second->Synchronize());
  EXPECT_OK(device_->AllocatePinned(kSlabBytes));
}

TEST_P(ReuseTest, R19_PinnedMemoryThatNoStreamUsesIsReusedAtOnce) {
  auto stream = NewStream("transfer");
  StoragePtr pinned = NewPinned(1, kSlabBytes);
  StreamHold hold = HoldStream(*stream);
  pinned.reset();
  EXPECT_OK(device_->AllocatePinned(kSlabBytes));
}

TEST_P(ReuseTest, R20_BeyondTheBudgetTheRefusalNamesAskedAndAvailable) {
  auto stream = NewStream("compute");
  const StoragePtr block = NewBlock(*stream, kSlabBytes / 2);
  EXPECT_THAT(
      device_->Allocate(kSlabBytes, *stream),
      StatusIs(kExhausted, AllOf(HasSubstr("asked for 1048576"), HasSubstr("available 524288"))));
  EXPECT_OK(device_->Allocate(kSlabBytes / 2, *stream));
  const StoragePtr pinned = NewPinned(0, kSlabBytes);
  EXPECT_THAT(device_->AllocatePinned(1),
              StatusIs(kExhausted, AllOf(HasSubstr("asked for 1 "), HasSubstr("available 0 "))));
  EXPECT_THAT(device_->Allocate(SIZE_MAX, *stream), StatusIs(kExhausted));
  EXPECT_OK(stream->status());
}

TEST_P(MemoryTest, R21_AWarmPoolAsksTheSystemForNothingAndTrimGivesAllBack) {
  auto stream = NewStream("compute");
  const auto serve = [&] {
    const StoragePtr block = NewBlock(*stream, 300000);
    const StoragePtr pinned = NewPinned(1, 300000);
    ASSERT_OK(Copy(*stream, block, pinned));
    pinned->RecordUse(*stream);
    ASSERT_OK(stream->Synchronize());
  };
  serve();
  const MemoryStats device_before = device_->device_memory_stats();
  const MemoryStats pinned_before = device_->pinned_memory_stats();
  EXPECT_GT(device_before.slab_allocation_count, 0u);
  EXPECT_GT(pinned_before.slab_allocation_count, 0u);
  for (int i = 0; i < 50; ++i) serve();
  const MemoryStats device_after = device_->device_memory_stats();
  const MemoryStats pinned_after = device_->pinned_memory_stats();
  EXPECT_EQ(device_after.slab_allocation_count, device_before.slab_allocation_count);
  EXPECT_EQ(pinned_after.slab_allocation_count, pinned_before.slab_allocation_count);
  EXPECT_EQ(device_after.reserved_bytes, device_before.reserved_bytes);
  device_->TrimMemory();
  EXPECT_EQ(device_->device_memory_stats().reserved_bytes, 0u);
  EXPECT_EQ(device_->pinned_memory_stats().reserved_bytes, 0u);
}

TEST_P(MemoryTest, R21_TrimKeepsWhatIsInFlight) {
  auto stream = NewStream("compute");
  StoragePtr block = NewBlock(*stream);
  const StoragePtr pinned = NewPinned(0);
  StreamHold hold = HoldStream(*stream);
  ASSERT_OK(Fill(*stream, block, 3));
  ASSERT_OK(Copy(*stream, pinned, block));
  block.reset();
  device_->TrimMemory();
  EXPECT_GT(device_->device_memory_stats().reserved_bytes, 0u);
  hold.Release();
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 3));
}

}  // namespace
}  // namespace cipherd::runtime
