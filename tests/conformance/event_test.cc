#include "tests/conformance/device_test.h"

namespace cipherd::runtime {
namespace {

class EventTest : public DeviceTest {
 protected:
  bool IsComplete(const Event& event) { return event.Query().value(); }
  // Asks until the answer is yes, as a server's completion loop would.
  void PollUntilComplete(const Event& event) {
    while (!IsComplete(event)) {
    }
  }
};
INSTANTIATE_ON_DEVICES(EventTest);

TEST_P(EventTest, R9_AnEventThatWasNeverRecordedCountsAsComplete) {
  auto stream = NewStream("compute");
  auto event = NewEvent();
  EXPECT_TRUE(IsComplete(*event));
  EXPECT_OK(event->Synchronize());
  EXPECT_OK(stream->Wait(*event));
  EXPECT_OK(stream->Synchronize());
}

TEST_P(EventTest, R10_AnEventCompletesWithTheWorkBeforeItAndNotAfterIt) {
  auto stream = NewStream("compute");
  const StoragePtr pinned = NewPinned(0);
  auto event = NewEvent();
  StreamHold before = HoldStream(*stream);
  ASSERT_OK(Fill(*stream, pinned, 1));
  ASSERT_OK(stream->Record(*event));
  EXPECT_FALSE(IsComplete(*event));
  before.Release();
  PollUntilComplete(*event);
  EXPECT_TRUE(HoldsOnly(pinned, 1));
  StreamHold after = HoldStream(*stream);
  EXPECT_TRUE(IsComplete(*event));
  EXPECT_OK(event->Synchronize());
}

TEST_P(EventTest, R11_AWaitOrdersTheWorkOfTwoStreams) {
  auto producer = NewStream("producer");
  auto consumer = NewStream("consumer");
  const StoragePtr block = NewBlock(*producer);
  const StoragePtr pinned = NewPinned(0);
  ASSERT_OK(Fill(*producer, block, 1));
  ASSERT_OK(producer->Synchronize());
  auto produced = NewEvent();
  StreamHold hold = HoldStream(*producer);
  ASSERT_OK(Fill(*producer, block, 2));
  ASSERT_OK(producer->Record(*produced));
  ASSERT_OK(consumer->Wait(*produced));
  ASSERT_OK(Copy(*consumer, pinned, block));
  for (int i = 0; i < 16; ++i) {
    ASSERT_OK_AND_ASSIGN(const bool is_done, consumer->Query());
    EXPECT_FALSE(is_done);
  }
  EXPECT_TRUE(HoldsOnly(pinned, 0));
  hold.Release();
  ASSERT_OK(consumer->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 2));
}

TEST_P(EventTest, R11_AWaitOrdersAnOverwriteAfterItsReader) {
  auto reader = NewStream("reader");
  auto writer = NewStream("writer");
  const StoragePtr block = NewBlock(*reader);
  const StoragePtr pinned = NewPinned(0);
  ASSERT_OK(Fill(*reader, block, 1));
  ASSERT_OK(Copy(*reader, pinned, block));
  auto was_read = NewEvent();
  ASSERT_OK(reader->Record(*was_read));
  ASSERT_OK(writer->Wait(*was_read));
  ASSERT_OK(Fill(*writer, block, 2));
  block->RecordUse(*writer);
  ASSERT_OK(reader->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 1));
}

TEST_P(EventTest, R12_AWaitIsNotReleasedByALaterRecord) {
  auto first = NewStream("first");
  auto second = NewStream("second");
  auto waiting = NewStream("waiting");
  const StoragePtr pinned = NewPinned(0);
  auto event = NewEvent();
  StreamHold hold = HoldStream(*first);
  ASSERT_OK(first->Record(*event));
  ASSERT_OK(waiting->Wait(*event));
  ASSERT_OK(second->Record(*event));
  ASSERT_OK(event->Synchronize());
  ASSERT_OK(Fill(*waiting, pinned, 1));
  for (int i = 0; i < 16; ++i) {
    ASSERT_OK_AND_ASSIGN(const bool is_done, waiting->Query());
    EXPECT_FALSE(is_done);
  }
  EXPECT_TRUE(HoldsOnly(pinned, 0));
  hold.Release();
  ASSERT_OK(waiting->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 1));
}

TEST_P(EventTest, R12_AWaitIsNotHeldUpByALaterRecord) {
  auto first = NewStream("first");
  auto second = NewStream("second");
  auto waiting = NewStream("waiting");
  auto event = NewEvent();
  ASSERT_OK(first->Record(*event));
  ASSERT_OK(waiting->Wait(*event));
  StreamHold hold = HoldStream(*second);
  ASSERT_OK(second->Record(*event));
  EXPECT_OK(waiting->Synchronize());
  EXPECT_FALSE(IsComplete(*event));
}

TEST_P(EventTest, R13_AnEventMayBeDroppedWhileWaitsOnItArePending) {
  auto producer = NewStream("producer");
  auto consumer = NewStream("consumer");
  const StoragePtr block = NewBlock(*producer);
  const StoragePtr pinned = NewPinned(0);
  StreamHold hold = HoldStream(*producer);
  ASSERT_OK(Fill(*producer, block, 4));
  auto event = NewEvent();
  ASSERT_OK(producer->Record(*event));
  ASSERT_OK(consumer->Wait(*event));
  event.reset();
  ASSERT_OK(Copy(*consumer, pinned, block));
  hold.Release();
  ASSERT_OK(consumer->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 4));
}

TEST_P(EventTest, R14_SecondsBetweenTwoEventsNeedBothComplete) {
  const auto kPrecondition = absl::StatusCode::kFailedPrecondition;
  auto stream = NewStream("compute");
  const StoragePtr block = NewBlock(*stream);
  auto start = NewEvent();
  auto end = NewEvent();
  EXPECT_THAT(end->SecondsSince(*start), StatusIs(kPrecondition));
  ASSERT_OK(stream->Record(*start));
  StreamHold hold = HoldStream(*stream);
  ASSERT_OK(Fill(*stream, block, 1));
  ASSERT_OK(stream->Record(*end));
  EXPECT_THAT(end->SecondsSince(*start), StatusIs(kPrecondition));
  hold.Release();
  ASSERT_OK(end->Synchronize());
  ASSERT_OK_AND_ASSIGN(const double seconds, end->SecondsSince(*start));
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 60);
}

}  // namespace
}  // namespace cipherd::runtime
