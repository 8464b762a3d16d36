#include <atomic>

#include "tests/conformance/device_test.h"

namespace cipherd::runtime {
namespace {

class StreamTest : public DeviceTest {};
INSTANTIATE_ON_DEVICES(StreamTest);

TEST_P(StreamTest, R1_WorkOfOneStreamRunsInTheOrderOfSubmission) {
  auto stream = NewStream("compute");
  const StoragePtr block = NewBlock(*stream);
  const StoragePtr first = NewPinned(0);
  const StoragePtr second = NewPinned(0);
  ASSERT_OK(Fill(*stream, block, 1));
  ASSERT_OK(Copy(*stream, first, block));
  ASSERT_OK(Fill(*stream, block, 2));
  ASSERT_OK(Copy(*stream, second, block));
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(first, 1));
  EXPECT_TRUE(HoldsOnly(second, 2));
}

TEST_P(StreamTest, R2_CopiesAndFillsReturnBeforeTheyRun) {
  auto stream = NewStream("transfer");
  const StoragePtr block = NewBlock(*stream);
  const StoragePtr source = NewPinned(3);
  const StoragePtr destination = NewPinned(0);
  {
    StreamHold hold = HoldStream(*stream);
    ASSERT_OK(Copy(*stream, block, source));
    ASSERT_OK(Copy(*stream, destination, block));
    EXPECT_TRUE(HoldsOnly(destination, 0));
    EXPECT_THAT(stream->Query(), ::testing::Eq(absl::StatusOr<bool>(false)));
  }
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(destination, 3));
}

TEST_P(StreamTest, R2_CopiesReadTheirSourceWhenTheyRun) {
  auto stream = NewStream("transfer");
  const StoragePtr source = NewPinned(3);
  const StoragePtr destination = NewPinned(0);
  StreamHold hold = HoldStream(*stream);
  ASSERT_OK(Copy(*stream, destination, source));
  std::fill_n(static_cast<uint8_t*>(source->data()), source->bytes(), 4);
  hold.Release();
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(destination, 4));
}

TEST_P(StreamTest, R2_PageableMemoryIsCopiedBothWays) {
  auto stream = NewStream("transfer");
  ASSERT_OK_AND_ASSIGN(StoragePtr source, AllocatePageable(kBlockBytes));
  ASSERT_OK_AND_ASSIGN(StoragePtr destination, AllocatePageable(kBlockBytes));
  std::fill_n(static_cast<uint8_t*>(source->data()), kBlockBytes, 9);
  const StoragePtr block = NewBlock(*stream);
  ASSERT_OK(Copy(*stream, block, source));
  ASSERT_OK(Copy(*stream, destination, block));
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(destination, 9));
}

TEST_P(StreamTest, R3_AStreamThatIsHeldDoesNotHoldAnother) {
  auto held = NewStream("held");
  auto free = NewStream("free");
  const StoragePtr source = NewPinned(5);
  const StoragePtr destination = NewPinned(0);
  const StoragePtr block = NewBlock(*free);
  StreamHold hold = HoldStream(*held);
  ASSERT_OK(Copy(*free, block, source));
  ASSERT_OK(Copy(*free, destination, block));
  ASSERT_OK(free->Synchronize());
  EXPECT_TRUE(HoldsOnly(destination, 5));
}

TEST_P(StreamTest, R4_HostFunctionsRunInOrderAndLaterWorkWaitsForThem) {
  auto stream = NewStream("compute");
  const StoragePtr pinned = NewPinned(0);
  const StoragePtr copied = NewPinned(0);
  const StoragePtr block = NewBlock(*stream);
  std::atomic<bool> saw_earlier_work{false};
  ASSERT_OK(Fill(*stream, block, 6));
  ASSERT_OK(Copy(*stream, pinned, block));
  ASSERT_OK(stream->LaunchHost([&] {
    saw_earlier_work = HoldsOnly(pinned, 6);
    std::fill_n(static_cast<uint8_t*>(pinned->data()), pinned->bytes(), 7);
  }));
  ASSERT_OK(Copy(*stream, copied, pinned));
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(saw_earlier_work);
  EXPECT_TRUE(HoldsOnly(copied, 7));
}

TEST_P(StreamTest, R5_QueryBecomesTrueWithoutABlockingCall) {
  auto stream = NewStream("compute");
  const StoragePtr pinned = NewPinned(0);
  const StoragePtr block = NewBlock(*stream);
  ASSERT_OK(Fill(*stream, block, 1));
  ASSERT_OK(Copy(*stream, pinned, block));
  while (true) {
    ASSERT_OK_AND_ASSIGN(const bool is_done, stream->Query());
    if (is_done) break;
  }
  EXPECT_TRUE(HoldsOnly(pinned, 1));
}

TEST_P(StreamTest, R6_DestroyingAStreamFinishesItsWork) {
  const StoragePtr source = NewPinned(8);
  const StoragePtr destination = NewPinned(0);
  auto stream = NewStream("short-lived");
  ASSERT_OK(Copy(*stream, destination, source));
  stream.reset();
  EXPECT_TRUE(HoldsOnly(destination, 8));
}

TEST_P(StreamTest, R7_ArgumentsAreCheckedBeforeAnythingIsEnqueued) {
  auto stream = NewStream("compute");
  const StoragePtr block = NewBlock(*stream);
  auto* const bytes = static_cast<uint8_t*>(block->data());
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(stream->CopyAsync(nullptr, bytes, 1), StatusIs(kInvalid, HasSubstr("null")));
  EXPECT_THAT(stream->CopyAsync(bytes, nullptr, 1), StatusIs(kInvalid, HasSubstr("null")));
  EXPECT_THAT(stream->CopyAsync(bytes + 1, bytes, 2), StatusIs(kInvalid, HasSubstr("overlap")));
  EXPECT_THAT(stream->CopyAsync(bytes, bytes + 1, 2), StatusIs(kInvalid, HasSubstr("overlap")));
  EXPECT_THAT(stream->FillAsync(nullptr, 0, 1), StatusIs(kInvalid));
  ASSERT_OK_AND_ASSIGN(StoragePtr pageable, AllocatePageable(16));
  EXPECT_THAT(Fill(*stream, pageable, 0), StatusIs(kInvalid));
  EXPECT_OK(stream->CopyAsync(nullptr, nullptr, 0));
  EXPECT_OK(stream->FillAsync(nullptr, 0, 0));
  EXPECT_OK(stream->CopyAsync(bytes + 2, bytes, 2));
  EXPECT_OK(stream->Synchronize());
}

TEST_P(StreamTest, R7_EventsAndStreamsOfAnotherDeviceAreRefused) {
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  auto stream = NewStream("compute");
  const std::unique_ptr<Device> other = Open();
  ASSERT_OK_AND_ASSIGN(auto foreign_stream, other->CreateStream("foreign"));
  ASSERT_OK_AND_ASSIGN(auto foreign_event, other->CreateEvent());
  auto event = NewEvent();
  EXPECT_THAT(stream->Record(*foreign_event), StatusIs(kInvalid));
  EXPECT_THAT(stream->Wait(*foreign_event), StatusIs(kInvalid));
  EXPECT_THAT(device_->Allocate(1, *foreign_stream), StatusIs(kInvalid));
  EXPECT_THAT(event->SecondsSince(*foreign_event), StatusIs(kInvalid));
  ASSERT_OK(stream->BeginCapture(false));
  ASSERT_OK_AND_ASSIGN(auto graph, stream->EndCapture());
  EXPECT_THAT(graph->Launch(*foreign_stream), StatusIs(kInvalid));
}

TEST_P(StreamTest, R8_AnErrorSticksAndWorkBehindItDoesNotRun) {
  auto stream = NewStream("faulty");
  const StoragePtr pinned = NewPinned(1);
  auto event = NewEvent();  // a failed device may refuse to make one
  ASSERT_OK(stream->Record(*event));
  ASSERT_OK(stream->Synchronize());
  EXPECT_OK(device_->health());
  ASSERT_OK(testing::FailStream(*stream, absl::InternalError("first fault")));
  Fill(*stream, pinned, 2).IgnoreError();
  const auto is_first = StatusIs(absl::StatusCode::kInternal, HasSubstr("first fault"));
  EXPECT_THAT(stream->Synchronize(), is_first);
  EXPECT_TRUE(HoldsOnly(pinned, 1));

  EXPECT_THAT(testing::FailStream(*stream, absl::InternalError("second fault")),
              ::testing::AnyOf(is_first, testing::IsOk()));
  EXPECT_THAT(stream->status(), is_first);
  EXPECT_THAT(stream->Query(), is_first);
  EXPECT_THAT(Fill(*stream, pinned, 2), is_first);
  EXPECT_THAT(stream->LaunchHost([] {}), is_first);
  EXPECT_THAT(stream->BeginCapture(false), is_first);
  EXPECT_THAT(stream->Record(*event), is_first);
  EXPECT_THAT(stream->Wait(*event), is_first);
  EXPECT_THAT(event->Query(), is_first);
  EXPECT_THAT(event->Synchronize(), is_first);
  EXPECT_THAT(device_->health(), is_first);
}

}  // namespace
}  // namespace cipherd::runtime
