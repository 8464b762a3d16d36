#include <functional>
#include <thread>

#include "tests/conformance/device_test.h"

namespace cipherd::runtime {
namespace {

constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kInternal = absl::StatusCode::kInternal;

class CaptureTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    stream_ = NewStream("origin");
    block_ = NewBlock(*stream_);
  }

  // Captures `call`, which must be refused, and expects EndCapture to name it. Afterwards the
  // stream works.
  void ExpectInvalidates(std::string_view name, const std::function<absl::Status()>& call) {
    SCOPED_TRACE(std::string(name));
    const auto names_call = HasSubstr(std::string(name));
    ASSERT_OK(stream_->BeginCapture(check_liveness_));
    ASSERT_OK(Fill(*stream_, block_, 1));
    EXPECT_THAT(call(), StatusIs(kPrecondition, names_call));
    ASSERT_OK(Fill(*stream_, block_, 2));
    EXPECT_THAT(stream_->EndCapture(), StatusIs(kInternal, names_call));
    EXPECT_FALSE(stream_->is_capturing());
    ASSERT_OK(Fill(*stream_, block_, 3));
    ASSERT_OK(stream_->Synchronize());
    EXPECT_OK(device_->health());
  }

  bool check_liveness_ = true;
  std::unique_ptr<Stream> stream_;
  StoragePtr block_;
};
INSTANTIATE_ON_DEVICES(CaptureTest);

TEST_P(CaptureTest, R29_SynchronisingAndQueryingInvalidate) {
  auto other = NewStream("other");
  auto event = NewEvent();
  auto start = NewEvent();
  ExpectInvalidates("Stream::Synchronize", [&] { return stream_->Synchronize(); });
  ExpectInvalidates("Stream::Synchronize", [&] { return other->Synchronize(); });
  ExpectInvalidates("Stream::Query", [&] { return stream_->Query().status(); });
  ExpectInvalidates("Stream::Query", [&] { return other->Query().status(); });
  ExpectInvalidates("Event::Synchronize", [&] { return event->Synchronize(); });
  ExpectInvalidates("Event::Query", [&] { return event->Query().status(); });
  ExpectInvalidates("Event::SecondsSince", [&] { return event->SecondsSince(*start).status(); });
  ExpectInvalidates("Device::Synchronize", [&] { return device_->Synchronize(); });
}

TEST_P(CaptureTest, R30_AllocatingOutsideThePoolOfTheCaptureInvalidates) {
  auto other = NewStream("other");
  ExpectInvalidates("Device::Allocate",
                    [&] { return device_->Allocate(kBlockBytes, *other).status(); });
  ExpectInvalidates("Device::AllocatePinned",
                    [&] { return device_->AllocatePinned(kBlockBytes).status(); });
}

TEST_P(CaptureTest, R31_PageableMemoryInACopyInvalidates) {
  std::vector<uint8_t> pageable(kBlockBytes);
  for (bool check_liveness : {false, true}) {
    check_liveness_ = check_liveness;
    ExpectInvalidates("Stream::CopyAsync", [&] {
      return stream_->CopyAsync(block_->data(), pageable.data(), kBlockBytes);
    });
    ExpectInvalidates("Stream::CopyAsync", [&] {
      return stream_->CopyAsync(pageable.data(), block_->data(), kBlockBytes);
    });
  }
}

TEST_P(CaptureTest, R32_WaitingForWorkOutsideTheCaptureInvalidates) {
  auto other = NewStream("other");
  auto event = NewEvent();
  ASSERT_OK(other->Record(*event));
  ExpectInvalidates("Stream::Wait", [&] { return stream_->Wait(*event); });
  // An event that was never recorded is complete, inside a capture too.
  auto unrecorded = NewEvent();
  ASSERT_OK(stream_->BeginCapture(false));
  EXPECT_OK(stream_->Wait(*unrecorded));
  EXPECT_OK(stream_->EndCapture());
}

TEST_P(CaptureTest, R33_AForkThatDoesNotRejoinFailsTheCapture) {
  auto fork = NewStream("fork");
  auto forked = NewEvent();
  auto joined = NewEvent();
  // With work or without.
  for (bool has_work : {false, true}) {
    ASSERT_OK(stream_->BeginCapture(false));
    ASSERT_OK(stream_->Record(*forked));
    ASSERT_OK(fork->Wait(*forked));
    if (has_work) {
      ASSERT_OK(Fill(*fork, block_, 1));
    }
    EXPECT_THAT(stream_->EndCapture(), StatusIs(kInternal, HasSubstr("'fork'")));
    EXPECT_FALSE(fork->is_capturing());
  }
  // Rejoined, but with work behind the join.
  ASSERT_OK(stream_->BeginCapture(false));
  ASSERT_OK(stream_->Record(*forked));
  ASSERT_OK(fork->Wait(*forked));
  ASSERT_OK(fork->Record(*joined));
  ASSERT_OK(Fill(*fork, block_, 1));
  ASSERT_OK(stream_->Wait(*joined));
  EXPECT_THAT(stream_->EndCapture(), StatusIs(kInternal, HasSubstr("'fork'")));
  for (Stream* stream : {stream_.get(), fork.get()}) {
    EXPECT_OK(Fill(*stream, block_, 2));
    EXPECT_OK(stream->Synchronize());
  }
}

TEST_P(CaptureTest, R33_AForkMayRejoinThroughAnotherFork) {
  auto first = NewStream("first");
  auto second = NewStream("second");
  auto event = NewEvent();
  ASSERT_OK(stream_->BeginCapture(false));
  ASSERT_OK(stream_->Record(*event));
  ASSERT_OK(first->Wait(*event));
  ASSERT_OK(Fill(*first, block_, 1));
  ASSERT_OK(first->Record(*event));
  ASSERT_OK(second->Wait(*event));
  ASSERT_OK(second->Record(*event));
  ASSERT_OK(stream_->Wait(*event));
  EXPECT_OK(stream_->EndCapture());
}

TEST_P(CaptureTest, R34_LivenessRefusesABlockThatIsNotLiveAtCapture) {
  StoragePtr freed = NewBlock(*stream_);
  const StoragePtr keeps_the_slab = NewBlock(*stream_);
  const MemoryAccess access{freed->data(), freed->bytes(), /*is_write=*/true};
  const MemoryAccess beyond{block_->data(), block_->bytes() + 1, /*is_write=*/false};
  freed.reset();
  ExpectInvalidates("Stream::DeclareAccess", [&] { return stream_->DeclareAccess({&access, 1}); });
  ExpectInvalidates("Stream::DeclareAccess", [&] { return stream_->DeclareAccess({&beyond, 1}); });
  ExpectInvalidates("Stream::FillAsync", [&] {
    return stream_->FillAsync(const_cast<void*>(access.address), 1, access.bytes);
  });
  // Outside a capture it is not asked for.
  EXPECT_OK(stream_->DeclareAccess({&access, 1}));
}

TEST_P(CaptureTest, R35_LaunchingAGraphInsideACaptureInvalidates) {
  ASSERT_OK(stream_->BeginCapture(false));
  ASSERT_OK_AND_ASSIGN(auto graph, stream_->EndCapture());
  ExpectInvalidates("Graph::Launch", [&] { return graph->Launch(*stream_); });
  auto other = NewStream("other");
  ASSERT_OK(stream_->BeginCapture(false));
  EXPECT_OK(graph->Launch(*other));
  EXPECT_OK(stream_->EndCapture());
}

TEST_P(CaptureTest, R36_AThreadAndAStreamCaptureOnceAtATime) {
  auto other = NewStream("other");
  ASSERT_OK(stream_->BeginCapture(false));
  EXPECT_THAT(stream_->BeginCapture(false), StatusIs(kPrecondition));
  EXPECT_THAT(other->BeginCapture(false), StatusIs(kPrecondition));
  EXPECT_THAT(other->EndCapture(), StatusIs(kPrecondition));
  std::thread([&] { EXPECT_THAT(stream_->EndCapture(), StatusIs(kPrecondition)); }).join();
  EXPECT_OK(stream_->EndCapture());
  EXPECT_THAT(stream_->EndCapture(), StatusIs(kPrecondition));
  EXPECT_OK(other->BeginCapture(false));
  EXPECT_OK(other->EndCapture());
}

TEST_P(CaptureTest, R37_OtherThreadsAreNotBoundByACapture) {
  ASSERT_OK(stream_->BeginCapture(true));
  ASSERT_OK(Fill(*stream_, block_, 1));
  std::thread([&] {
    auto stream = NewStream("other");
    auto event = NewEvent();
    const StoragePtr block = NewBlock(*stream);
    const StoragePtr pinned = NewPinned(0);
    EXPECT_OK(Fill(*stream, block, 5));
    EXPECT_OK(Copy(*stream, pinned, block));
    EXPECT_OK(stream->Record(*event));
    EXPECT_OK(event->Synchronize());
    EXPECT_OK(stream->Synchronize());
    EXPECT_TRUE(HoldsOnly(pinned, 5));
    EXPECT_OK(stream->BeginCapture(false));
    EXPECT_OK(stream->EndCapture());
  }).join();
  EXPECT_OK(stream_->EndCapture());
}

TEST_P(CaptureTest, R37_AThreadThatCapturesMayEnqueueOnOtherStreams) {
  auto other = NewStream("other");
  const StoragePtr pinned = NewPinned(0);
  auto event = NewEvent();
  ASSERT_OK(stream_->BeginCapture(false));
  EXPECT_OK(Fill(*other, pinned, 5));
  EXPECT_OK(other->Record(*event));
  ASSERT_OK_AND_ASSIGN(auto graph, stream_->EndCapture());
  EXPECT_EQ(graph->node_count(), 0u);
  ASSERT_OK(event->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 5));
}

TEST_P(CaptureTest, R38_ARecordInACaptureStandsForThatCaptureOnly) {
  auto other = NewStream("other");
  auto event = NewEvent();
  ASSERT_OK(stream_->BeginCapture(false));
  ASSERT_OK(stream_->Record(*event));
  ASSERT_OK(stream_->EndCapture());
  EXPECT_THAT(event->Query(), StatusIs(kPrecondition));
  EXPECT_THAT(event->Synchronize(), StatusIs(kPrecondition));
  EXPECT_THAT(other->Wait(*event), StatusIs(kPrecondition));
  ExpectInvalidates("Stream::Wait", [&] { return stream_->Wait(*event); });
  ASSERT_OK(other->Record(*event));
  EXPECT_OK(event->Synchronize());
  EXPECT_OK(stream_->Wait(*event));
}

TEST_P(CaptureTest, R39_AStreamDestroyedInsideACaptureFailsIt) {
  auto fork = NewStream("fork");
  auto event = NewEvent();
  ASSERT_OK(stream_->BeginCapture(false));
  ASSERT_OK(stream_->Record(*event));
  ASSERT_OK(fork->Wait(*event));
  fork.reset();
  EXPECT_THAT(stream_->EndCapture(), StatusIs(kInternal, HasSubstr("'fork'")));
  ASSERT_OK(stream_->BeginCapture(false));
  stream_.reset();
  auto next = NewStream("next");
  EXPECT_OK(next->BeginCapture(false));
  EXPECT_OK(next->EndCapture());
}

}  // namespace
}  // namespace cipherd::runtime
