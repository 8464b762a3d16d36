#include <atomic>
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

}  // namespace
}  // namespace cipherd::runtime
