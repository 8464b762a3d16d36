#include "tests/conformance/device_test.h"

namespace cipherd::runtime {
namespace {

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

// One slab of device memory, see OneSlabTest.
class CaptureMemoryTest : public OneSlabTest {};
INSTANTIATE_ON_DEVICES(CaptureMemoryTest);

TEST_P(CaptureMemoryTest, R40_AGraphReservesItsBlocksUntilItDies) {
  auto stream = NewStream("compute");
  ASSERT_OK(stream->BeginCapture(false));
  StoragePtr block = NewBlock(*stream, kSlabBytes);
  ASSERT_OK(Fill(*stream, block, 1));
  block.reset();
  ASSERT_OK_AND_ASSIGN(auto graph, stream->EndCapture());
  EXPECT_EQ(graph->pool_bytes(), kSlabBytes);
  ASSERT_OK(stream->Synchronize());
  EXPECT_EQ(device_->device_memory_stats().allocated_bytes, kSlabBytes);
  EXPECT_THAT(device_->Allocate(kSlabBytes, *stream), StatusIs(kExhausted));
  ASSERT_OK(graph->Launch(*stream));
  graph.reset();
  ASSERT_OK(stream->Synchronize());
  EXPECT_EQ(device_->device_memory_stats().allocated_bytes, 0u);
  EXPECT_OK(device_->Allocate(kSlabBytes, *stream));
}

TEST_P(CaptureMemoryTest, R40_ABlockOutlivesItsGraphWhileItHasAnOwner) {
  auto stream = NewStream("compute");
  const StoragePtr pinned = NewPinned(0, kSlabBytes);
  ASSERT_OK(stream->BeginCapture(false));
  StoragePtr output = NewBlock(*stream, kSlabBytes);
  ASSERT_OK(Fill(*stream, output, 7));
  ASSERT_OK_AND_ASSIGN(auto graph, stream->EndCapture());
  ASSERT_OK(graph->Launch(*stream));
  graph.reset();
  EXPECT_THAT(device_->Allocate(kSlabBytes, *stream), StatusIs(kExhausted));
  ASSERT_OK(Copy(*stream, pinned, output));
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 7));
  output.reset();
  EXPECT_OK(device_->Allocate(kSlabBytes, *stream));
}

TEST_P(CaptureMemoryTest, R40_AReaderOfAGraphsBlockKeepsItBeyondTheGraph) {
  auto stream = NewStream("compute");
  auto reader = NewStream("reader");
  ASSERT_OK(stream->BeginCapture(false));
  StoragePtr output = NewBlock(*stream, kSlabBytes);
  ASSERT_OK(Fill(*stream, output, 7));
  ASSERT_OK_AND_ASSIGN(auto graph, stream->EndCapture());
  StreamHold hold = HoldStream(*reader);
  output->RecordUse(*reader);
  output.reset();
  graph.reset();
  EXPECT_THAT(device_->Allocate(kSlabBytes, *stream), StatusIs(kExhausted));
  hold.Release();
  ASSERT_OK(reader->Synchronize());
  EXPECT_OK(device_->Allocate(kSlabBytes, *stream));
}

TEST_P(CaptureMemoryTest, R41_InsideACaptureTheSameStreamReusesABlock) {
  auto stream = NewStream("compute");
  const StoragePtr first_copy = NewPinned(0, kSlabBytes / 2);
  const StoragePtr second_copy = NewPinned(0, kSlabBytes / 2);
  ASSERT_OK(stream->BeginCapture(false));
  const StoragePtr other_half = NewBlock(*stream, kSlabBytes / 2);
  StoragePtr first = NewBlock(*stream, kSlabBytes / 2);
  void* const address = first->data();
  ASSERT_OK(Fill(*stream, first, 1));
  ASSERT_OK(Copy(*stream, first_copy, first));
  first.reset();
  ASSERT_OK_AND_ASSIGN(StoragePtr second, device_->Allocate(kSlabBytes / 2, *stream));
  EXPECT_EQ(second->data(), address);
  ASSERT_OK(Fill(*stream, second, 2));
  ASSERT_OK(Copy(*stream, second_copy, second));
  ASSERT_OK_AND_ASSIGN(auto graph, stream->EndCapture());
  EXPECT_EQ(graph->pool_bytes(), kSlabBytes);
  ASSERT_OK(graph->Launch(*stream));
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(first_copy, 1));
  EXPECT_TRUE(HoldsOnly(second_copy, 2));
}

TEST_P(CaptureMemoryTest, R41_InsideACaptureABlockThatAnotherStreamUsedIsNotReused) {
  auto stream = NewStream("origin");
  auto fork = NewStream("fork");
  auto event = NewEvent();
  ASSERT_OK(stream->BeginCapture(false));
  ASSERT_OK(stream->Record(*event));
  ASSERT_OK(fork->Wait(*event));
  StoragePtr block = NewBlock(*stream, kSlabBytes);
  block->RecordUse(*fork);
  block.reset();
  EXPECT_THAT(device_->Allocate(kSlabBytes, *stream), StatusIs(kExhausted));
  EXPECT_THAT(device_->Allocate(kSlabBytes, *fork), StatusIs(kExhausted));
  ASSERT_OK(fork->Record(*event));
  ASSERT_OK(stream->Wait(*event));
  EXPECT_OK(stream->EndCapture());
}

TEST_P(CaptureMemoryTest, R41_InsideACaptureABlockOfOneStreamIsNotForAnother) {
  auto stream = NewStream("origin");
  auto fork = NewStream("fork");
  auto event = NewEvent();
  ASSERT_OK(stream->BeginCapture(false));
  ASSERT_OK(stream->Record(*event));
  ASSERT_OK(fork->Wait(*event));
  NewBlock(*stream, kSlabBytes).reset();
  EXPECT_THAT(device_->Allocate(kSlabBytes, *fork), StatusIs(kExhausted));
  EXPECT_OK(device_->Allocate(kSlabBytes, *stream));
  ASSERT_OK(fork->Record(*event));
  ASSERT_OK(stream->Wait(*event));
  EXPECT_OK(stream->EndCapture());
}

TEST_P(CaptureMemoryTest, R42_ACaptureDoesNotTakeABlockThatItsStreamStillUses) {
  auto stream = NewStream("compute");
  StoragePtr block = NewBlock(*stream, kSlabBytes);
  StreamHold hold = HoldStream(*stream);
  ASSERT_OK(Fill(*stream, block, 1));
  block.reset();
  ASSERT_OK(stream->BeginCapture(false));
  EXPECT_THAT(device_->Allocate(kSlabBytes, *stream), StatusIs(kExhausted));
  ASSERT_OK(stream->EndCapture());
  hold.Release();
  ASSERT_OK(stream->Synchronize());
  ASSERT_OK(stream->BeginCapture(false));
  EXPECT_OK(device_->Allocate(kSlabBytes, *stream));
  ASSERT_OK(stream->EndCapture());
}

TEST_P(CaptureMemoryTest, R42_ABlockDroppedInsideACaptureIsKeptForEarlierWorkOfItsStream) {
  auto stream = NewStream("compute");
  auto other = NewStream("other");
  StoragePtr block = NewBlock(*stream, kSlabBytes);
  StreamHold hold = HoldStream(*stream);
  ASSERT_OK(Fill(*stream, block, 1));
  ASSERT_OK(stream->BeginCapture(false));
  block.reset();
  ASSERT_OK(stream->EndCapture());
  EXPECT_THAT(device_->Allocate(kSlabBytes, *other), StatusIs(kExhausted));
  hold.Release();
  ASSERT_OK(stream->Synchronize());
  EXPECT_OK(device_->Allocate(kSlabBytes, *other));
}

class FailedCaptureTest : public DeviceTest {};
INSTANTIATE_ON_DEVICES(FailedCaptureTest);

TEST_P(FailedCaptureTest, R43_AHundredFailedCapturesLeaveMemoryAsItWas) {
  auto stream = NewStream("origin");
  auto fork = NewStream("fork");
  auto event = NewEvent();
  const StoragePtr resident = NewBlock(*stream, 12345);
  const auto fail = [&](bool by_fork) {
    ASSERT_OK(stream->BeginCapture(true));
    const StoragePtr kept = NewBlock(*stream, 700000);
    const StoragePtr large = NewBlock(*stream, 3000000);
    StoragePtr dropped = NewBlock(*stream, 300000);
    ASSERT_OK(Fill(*stream, dropped, 1));
    dropped.reset();
    ASSERT_OK(Copy(*stream, NewBlock(*stream, 700000), kept));
    if (by_fork) {
      ASSERT_OK(stream->Record(*event));
      ASSERT_OK(fork->Wait(*event));
      ASSERT_OK(Fill(*fork, NewBlock(*fork, 5000), 1));
    } else {
      EXPECT_FALSE(stream->Synchronize().ok());
    }
    EXPECT_THAT(stream->EndCapture(), StatusIs(absl::StatusCode::kInternal));
  };
  ASSERT_OK_AND_ASSIGN(const testing::MemoryFigures before, testing::MemoryFiguresOf(*device_));
  const size_t reserved_before = device_->device_memory_stats().reserved_bytes;
  fail(/*by_fork=*/false);
  fail(/*by_fork=*/true);
  ASSERT_OK(device_->Synchronize());
  const MemoryStats warm = device_->device_memory_stats();
  for (int i = 0; i < 100; ++i) {
    fail(/*by_fork=*/i % 2 == 1);
    ASSERT_OK_AND_ASSIGN(const testing::MemoryFigures after, testing::MemoryFiguresOf(*device_));
    ASSERT_EQ(after, before);
  }
  EXPECT_EQ(device_->device_memory_stats().reserved_bytes, warm.reserved_bytes);
  EXPECT_EQ(device_->device_memory_stats().slab_allocation_count, warm.slab_allocation_count);
  device_->TrimMemory();
  EXPECT_EQ(device_->device_memory_stats().reserved_bytes, reserved_before);
}

}  // namespace
}  // namespace cipherd::runtime
