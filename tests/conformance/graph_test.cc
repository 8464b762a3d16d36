#include <atomic>
#include <chrono>
#include <thread>

#include "tests/conformance/device_test.h"

namespace cipherd::runtime {
namespace {

class GraphTest : public DeviceTest {
 protected:
  // destination = source, on a stream that this makes and destroys.
  std::unique_ptr<Graph> CaptureCopy(const StoragePtr& destination, const StoragePtr& source,
                                     bool check_liveness = false) {
    auto stream = NewStream("capture");
    EXPECT_OK(stream->BeginCapture(check_liveness));
    EXPECT_OK(Copy(*stream, destination, source));
    return stream->EndCapture().value();
  }
};
INSTANTIATE_ON_DEVICES(GraphTest);

TEST_P(GraphTest, R22_CapturedWorkRunsAtLaunchesOnly) {
  auto stream = NewStream("compute");
  const StoragePtr pinned = NewPinned(0);
  std::atomic<int> run_count{0};
  ASSERT_OK(stream->BeginCapture(false));
  EXPECT_TRUE(stream->is_capturing());
  ASSERT_OK(Fill(*stream, pinned, 1));
  ASSERT_OK(stream->LaunchHost([&] { ++run_count; }));
  ASSERT_OK_AND_ASSIGN(auto graph, stream->EndCapture());
  EXPECT_FALSE(stream->is_capturing());
  EXPECT_EQ(graph->node_count(), 2u);
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 0));
  for (int i = 0; i < 3; ++i) ASSERT_OK(graph->Launch(*stream));
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 1));
  EXPECT_EQ(run_count, 3);
}

TEST_P(GraphTest, R23_ALaunchIsEnqueuedInTheOrderOfItsStream) {
  auto stream = NewStream("compute");
  const StoragePtr block = NewBlock(*stream);
  const StoragePtr pinned = NewPinned(0);
  const StoragePtr after = NewPinned(0);
  auto graph = CaptureCopy(pinned, block);
  StreamHold hold = HoldStream(*stream);
  ASSERT_OK(Fill(*stream, block, 1));
  ASSERT_OK(graph->Launch(*stream));
  ASSERT_OK(Fill(*stream, block, 2));
  ASSERT_OK(Copy(*stream, after, block));
  EXPECT_TRUE(HoldsOnly(pinned, 0));
  hold.Release();
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(pinned, 1));
  EXPECT_TRUE(HoldsOnly(after, 2));
}

TEST_P(GraphTest, R24_EachLaunchReadsThePayloadAnewAtTheSameAddresses) {
  auto stream = NewStream("compute");
  const StoragePtr source = NewPinned(0);
  const StoragePtr destination = NewPinned(0);
  auto graph = CaptureCopy(destination, source);
  for (int value : {3, 5, 7}) {
    std::fill_n(static_cast<uint8_t*>(source->data()), source->bytes(), value);
    ASSERT_OK(graph->Launch(*stream));
    ASSERT_OK(stream->Synchronize());
    EXPECT_TRUE(HoldsOnly(destination, value));
  }
}

TEST_P(GraphTest, R25_AForkThatRejoinsIsPartOfTheGraphAndKeepsItsOrder) {
  auto stream = NewStream("origin");
  auto fork = NewStream("fork");
  const StoragePtr block = NewBlock(*stream);
  const StoragePtr copy = NewBlock(*stream);
  const StoragePtr before_join = NewPinned(0);
  const StoragePtr after_join = NewPinned(0);
  auto forked = NewEvent();
  auto joined = NewEvent();
  ASSERT_OK(stream->BeginCapture(false));
  ASSERT_OK(Fill(*stream, block, 1));
  ASSERT_OK(stream->Record(*forked));
  ASSERT_OK(fork->Wait(*forked));
  EXPECT_TRUE(fork->is_capturing());
  ASSERT_OK(Copy(*fork, copy, block));
  ASSERT_OK(Copy(*fork, before_join, block));
  ASSERT_OK(fork->Record(*joined));
  ASSERT_OK(stream->Wait(*joined));
  ASSERT_OK(Fill(*stream, block, 2));
  ASSERT_OK(Copy(*stream, after_join, copy));
  ASSERT_OK_AND_ASSIGN(auto graph, stream->EndCapture());
  EXPECT_FALSE(fork->is_capturing());
  EXPECT_EQ(graph->node_count(), 5u);
  ASSERT_OK(graph->Launch(*stream));
  ASSERT_OK(stream->Synchronize());
  EXPECT_TRUE(HoldsOnly(before_join, 1));
  EXPECT_TRUE(HoldsOnly(after_join, 1));
  // The fork is an ordinary stream again.
  ASSERT_OK(Fill(*fork, after_join, 9));
  ASSERT_OK(fork->Synchronize());
  EXPECT_TRUE(HoldsOnly(after_join, 9));
}

TEST_P(GraphTest, R26_DestroyingAGraphWaitsForItsLaunches) {
  auto stream = NewStream("compute");
  const StoragePtr source = NewPinned(4);
  const StoragePtr destination = NewPinned(0);
  auto graph = CaptureCopy(destination, source);
  ASSERT_OK(graph->Launch(*stream));
  graph.reset();
  EXPECT_TRUE(HoldsOnly(destination, 4));
}

TEST_P(GraphTest, R26_AGraphMayBeDestroyedWhileItsLaunchIsHeld) {
  auto stream = NewStream("compute");
  const StoragePtr source = NewPinned(4);
  const StoragePtr destination = NewPinned(0);
  auto graph = CaptureCopy(destination, source);
  StreamHold hold = HoldStream(*stream);
  ASSERT_OK(graph->Launch(*stream));
  bool ran_before_the_end = false;
  std::thread owner([&] {
    graph.reset();
    ran_before_the_end = HoldsOnly(destination, 4);
  });
  hold.Release();
  owner.join();
  EXPECT_TRUE(ran_before_the_end);
}

TEST_P(GraphTest, R27_LivenessNamesABlockThatWasFreed) {
  auto stream = NewStream("compute");
  StoragePtr source = NewBlock(*stream);
  const StoragePtr destination = NewPinned(0);
  auto graph = CaptureCopy(destination, source, /*check_liveness=*/true);
  EXPECT_OK(graph->CheckLiveness());
  const std::string address = ::testing::PrintToString(source->data());
  source.reset();
  EXPECT_THAT(graph->CheckLiveness(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(address)));
}

TEST_P(GraphTest, R27_ABlockAtTheAddressOfAFreedOneDoesNotReviveTheGraph) {
  auto stream = NewStream("compute");
  StoragePtr source = NewBlock(*stream);
  const StoragePtr destination = NewPinned(0);
  auto graph = CaptureCopy(destination, source, /*check_liveness=*/true);
  void* const address = source->data();
  source.reset();
  const StoragePtr impostor = NewBlock(*stream);
  ASSERT_EQ(impostor->data(), address);
  EXPECT_THAT(graph->CheckLiveness(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(GraphTest, R27_LivenessFollowsPinnedBlocksAndDeclaredAccesses) {
  auto stream = NewStream("compute");
  StoragePtr pinned = NewPinned(1);
  StoragePtr weights = NewBlock(*stream);
  const StoragePtr destination = NewBlock(*stream);
  ASSERT_OK(stream->BeginCapture(true));
  ASSERT_OK(Copy(*stream, destination, pinned));
  const MemoryAccess access{weights->data(), weights->bytes(), /*is_write=*/false};
  ASSERT_OK(stream->DeclareAccess({&access, 1}));
  ASSERT_OK_AND_ASSIGN(auto graph, stream->EndCapture());
  EXPECT_OK(graph->CheckLiveness());
  {
    ASSERT_OK(stream->BeginCapture(true));
    ASSERT_OK(Copy(*stream, destination, pinned));
    ASSERT_OK_AND_ASSIGN(auto copy_only, stream->EndCapture());
    weights.reset();
    EXPECT_OK(copy_only->CheckLiveness());
    EXPECT_THAT(graph->CheckLiveness(), StatusIs(absl::StatusCode::kFailedPrecondition));
    pinned.reset();
    EXPECT_THAT(copy_only->CheckLiveness(), StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

TEST_P(GraphTest, R27_LivenessIgnoresTheGraphsOwnBlocksAndIsOffUnlessAsked) {
  auto stream = NewStream("compute");
  StoragePtr outside = NewBlock(*stream);
  ASSERT_OK(stream->BeginCapture(true));
  StoragePtr inside = NewBlock(*stream);
  ASSERT_OK(Fill(*stream, inside, 1));
  ASSERT_OK_AND_ASSIGN(auto checked, stream->EndCapture());
  ASSERT_OK(stream->BeginCapture(false));
  ASSERT_OK(Fill(*stream, outside, 1));
  ASSERT_OK_AND_ASSIGN(auto unchecked, stream->EndCapture());
  inside.reset();
  outside.reset();
  EXPECT_OK(checked->CheckLiveness());
  EXPECT_OK(unchecked->CheckLiveness());
}

TEST_P(GraphTest, R28_IndependentGraphsRunOnStreamsOfTheirOwn) {
  auto held = NewStream("held");
  auto free = NewStream("free");
  const StoragePtr source = NewBlock(*free);
  ASSERT_OK(Fill(*free, source, 6));
  ASSERT_OK(free->Synchronize());
  const StoragePtr first = NewPinned(0);
  const StoragePtr second = NewPinned(0);
  auto first_graph = CaptureCopy(first, source);
  auto second_graph = CaptureCopy(second, source);
  StreamHold hold = HoldStream(*held);
  ASSERT_OK(first_graph->Launch(*held));
  ASSERT_OK(second_graph->Launch(*free));
  ASSERT_OK(free->Synchronize());
  EXPECT_TRUE(HoldsOnly(second, 6));
  EXPECT_TRUE(HoldsOnly(first, 0));
  hold.Release();
  ASSERT_OK(held->Synchronize());
  EXPECT_TRUE(HoldsOnly(first, 6));
}

// A graph that fills a block with 1, records an event, and fills another block once it is let.
class LaunchRecordTest : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    launching_ = NewStream("launching");
    waiting_ = NewStream("waiting");
    event_ = NewEvent();
    block_ = NewBlock(*launching_);
    later_block_ = NewBlock(*launching_);
    seen_ = NewPinned(0);
    auto stream = NewStream("capture");
    ASSERT_OK(stream->BeginCapture(false));
    ASSERT_OK(Fill(*stream, block_, 1));
    ASSERT_OK(stream->RecordInLaunches(event_));
    ASSERT_OK(stream->LaunchHost([this] {
      while (!is_open_) std::this_thread::yield();
    }));
    ASSERT_OK(Fill(*stream, later_block_, 2));
    ASSERT_OK_AND_ASSIGN(graph_, stream->EndCapture());
  }
  void TearDown() override { is_open_ = true; }
  // Here graphs run beside the thread that launches them.
  bool runs_on_its_own() const { return GetParam().find("puppet") == std::string::npos; }

  std::atomic<bool> is_open_{true};
  std::unique_ptr<Stream> launching_;
  std::unique_ptr<Stream> waiting_;
  std::shared_ptr<Event> event_;
  StoragePtr block_;
  StoragePtr later_block_;
  StoragePtr seen_;
  std::unique_ptr<Graph> graph_;
};
INSTANTIATE_ON_DEVICES(LaunchRecordTest);

TEST_P(LaunchRecordTest, R45_ARecordForLaunchesIsAnOrdinaryRecordOfEachLaunch) {
  // The records are no work of their own.
  EXPECT_EQ(graph_->node_count(), 3u);
  // Before the first launch it was never recorded.
  ASSERT_OK_AND_ASSIGN(bool is_complete, event_->Query());
  EXPECT_TRUE(is_complete);
  for (int launch = 0; launch < 2; ++launch) {
    StreamHold hold = HoldStream(*launching_);
    ASSERT_OK(Fill(*launching_, block_, 9));
    ASSERT_OK(graph_->Launch(*launching_));
    ASSERT_OK_AND_ASSIGN(is_complete, event_->Query());
    EXPECT_FALSE(is_complete);
    ASSERT_OK(waiting_->Wait(*event_));
    ASSERT_OK(Copy(*waiting_, seen_, block_));
    hold.Release();
    ASSERT_OK(event_->Synchronize());
    ASSERT_OK(waiting_->Synchronize());
    EXPECT_TRUE(HoldsOnly(seen_, 1));
    ASSERT_OK(launching_->Synchronize());
  }
  auto start = NewEvent();
  ASSERT_OK(launching_->Record(*start));
  ASSERT_OK(graph_->Launch(*launching_));
  ASSERT_OK(event_->Synchronize());
  ASSERT_OK_AND_ASSIGN(const double seconds, event_->SecondsSince(*start));
  EXPECT_GE(seconds, 0);
}

TEST_P(LaunchRecordTest, R46_ItCompletesWithWhatIsBeforeItInTheGraphAndNotWithTheRest) {
  if (!runs_on_its_own()) GTEST_SKIP() << "a puppet runs a graph in one piece";
  is_open_ = false;
  ASSERT_OK(graph_->Launch(*launching_));
  ASSERT_OK(waiting_->Wait(*event_));
  ASSERT_OK(Copy(*waiting_, seen_, block_));
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool has_seen = false;
  while (!has_seen && std::chrono::steady_clock::now() < give_up) {
    ASSERT_OK_AND_ASSIGN(has_seen, waiting_->Query());
  }
  ASSERT_OK_AND_ASSIGN(const bool has_ended, launching_->Query());
  is_open_ = true;
  EXPECT_TRUE(has_seen);
  EXPECT_FALSE(has_ended);
  ASSERT_OK(launching_->Synchronize());
  EXPECT_TRUE(HoldsOnly(seen_, 1));
}

TEST_P(LaunchRecordTest, R47_AWaitBindsToTheLaunchThatItSaw) {
  auto later = NewStream("later");
  std::atomic<bool> has_run = false;
  ASSERT_OK(graph_->Launch(*launching_));
  ASSERT_OK(waiting_->Wait(*event_));
  ASSERT_OK(waiting_->LaunchHost([&] { has_run = true; }));
  ASSERT_OK(Fill(*launching_, block_, 9));
  ASSERT_OK(launching_->Synchronize());
  StreamHold hold = HoldStream(*launching_);
  ASSERT_OK(graph_->Launch(*launching_));
  // Of the first launch: not held up by the second.
  EXPECT_OK(waiting_->Synchronize());
  EXPECT_TRUE(has_run);
  // Of the second: not released by the first, after which the block held 9.
  ASSERT_OK(later->Wait(*event_));
  ASSERT_OK(Copy(*later, seen_, block_));
  hold.Release();
  ASSERT_OK(later->Synchronize());
  EXPECT_TRUE(HoldsOnly(seen_, 1));
  ASSERT_OK(launching_->Synchronize());
}

TEST_P(LaunchRecordTest, R35_ARefusedLaunchRecordsNothing) {
  ASSERT_OK(waiting_->BeginCapture(false));
  EXPECT_THAT(graph_->Launch(*waiting_), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(waiting_->EndCapture().ok());
  EXPECT_OK(device_->health());
  ASSERT_OK_AND_ASSIGN(const bool is_complete, event_->Query());
  EXPECT_TRUE(is_complete);
  ASSERT_OK(graph_->Launch(*waiting_));
  EXPECT_OK(waiting_->Synchronize());
}

TEST_P(LaunchRecordTest, R48_TheGraphKeepsTheEventAndOutsideACaptureItIsARecord) {
  std::weak_ptr<Event> kept = event_;
  event_.reset();
  EXPECT_FALSE(kept.expired());
  ASSERT_OK(graph_->Launch(*launching_));
  ASSERT_OK(launching_->Synchronize());
  graph_.reset();
  EXPECT_TRUE(kept.expired());

  auto plain = NewEvent();
  StreamHold hold = HoldStream(*launching_);
  ASSERT_OK(launching_->RecordInLaunches(plain));
  ASSERT_OK_AND_ASSIGN(const bool is_complete, plain->Query());
  EXPECT_FALSE(is_complete);
  hold.Release();
  ASSERT_OK(plain->Synchronize());

  const auto other = Open();
  EXPECT_THAT(launching_->RecordInLaunches(nullptr), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK(launching_->BeginCapture(false));
  EXPECT_THAT(launching_->RecordInLaunches(other->CreateEvent().value()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("another device")));
  EXPECT_OK(launching_->EndCapture().status());
}

}  // namespace
}  // namespace cipherd::runtime
