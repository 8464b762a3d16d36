// What comes before what around a reusable buffer, with streams held in the worst place.
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/execution/reusable_value_buffer.h"
#include "core/runtime/host/puppet_device.h"
#include "core/value/tensor_copy.h"
#include "tests/execution/execution_fixture.h"
#include "tests/testing/test_kernels.h"

namespace cipherd::testing {
namespace {

using execution::CopyHandle;
using execution::ReusableValueBuffer;
using value::Placement;
using value::Tensor;
using value::ValueTree;

class BufferOrderingTest : public ExecutionTest {};

TEST_P(BufferOrderingTest, B4_CopiesOfOneBufferKeepTheirOrderAcrossStreams) {
  auto buffer = DeviceBuffer(PinnedTree({1}));
  auto second_transfer = NewStream("second transfer");
  StreamHold hold = Hold(*transfer_);
  ASSERT_OK(buffer->CopyFrom(PinnedTree({2}), {.stream = transfer_.get()}));
  ASSERT_OK(buffer->CopyFrom(PinnedTree({3}), {.stream = second_transfer.get()}));
  LetEverythingRun();
  hold.Release();
  ASSERT_OK(transfer_->Synchronize());
  ASSERT_OK(second_transfer->Synchronize());
  EXPECT_EQ(ReadWords(buffer->value().value()), (Words{3}));
}

TEST_P(BufferOrderingTest, B4_TheFirstCopyComesAfterTheInitialisation) {
  StreamHold hold = Hold(*transfer_);
  ASSERT_OK_AND_ASSIGN(
      auto buffer, ReusableValueBuffer::Like(PinnedTree({1}), {.placement = Placement::On(*device_),
                                                               .stream = transfer_.get()}));
  ASSERT_OK(buffer->CopyFrom(PinnedTree({2}), {.stream = compute_.get()}));
  LetEverythingRun();
  hold.Release();
  ASSERT_OK(transfer_->Synchronize());
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(buffer->value().value()), (Words{2}));
}

TEST_P(BufferOrderingTest, B4_OneEventIsRecordedForAllLeaves) {
  const ValueTree tree = ValueTree::List({PinnedTree({1}), PinnedTree({2}), PinnedTree({3})});
  auto buffer = DeviceBuffer(tree);
  const int copies = copy_count();
  const int records = device_->call_count(FaultPoint::kRecord);
  const int events = device_->call_count(FaultPoint::kCreateEvent);
  ASSERT_OK(buffer->CopyFrom(tree, {.stream = transfer_.get()}));
  EXPECT_EQ(copy_count() - copies, 3);
  EXPECT_EQ(device_->call_count(FaultPoint::kRecord) - records, 1);
  EXPECT_EQ(device_->call_count(FaultPoint::kCreateEvent) - events, 1);
}

// B4, hand-stepped: after each single copy, the event says whether all have been made.
TEST(BufferSteppingTest, B4_TheEventComesAfterTheLastLeaf) {
  ASSERT_OK_AND_ASSIGN(auto device, runtime::host::PuppetDevice::Open({}, SmallPools()));
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("transfer"));
  auto pinned = [&](uint64_t word) {
    Tensor tensor = Tensor::AllocatePinned(*device, value::DType::kUint64, {1}).value();
    *tensor.data_as<uint64_t>() = word;
    return ValueTree::Leaf(tensor);
  };
  ASSERT_OK_AND_ASSIGN(
      auto buffer,
      ReusableValueBuffer::Like(ValueTree::List({pinned(0), pinned(0), pinned(0)}),
                                {.placement = Placement::On(*device), .stream = stream.get()}));
  ASSERT_OK(stream->Synchronize());
  ASSERT_OK_AND_ASSIGN(CopyHandle copied,
                       buffer->CopyFrom(ValueTree::List({pinned(1), pinned(2), pinned(3)}),
                                        {.stream = stream.get()}));
  ASSERT_OK_AND_ASSIGN(ValueTree tree, buffer->value());
  auto copied_leaves = [&] {  // the puppet's device memory is the host's
    int count = 0;
    for (const Tensor* tensor : value::TensorsOf(tree)) count += *tensor->data_as<uint64_t>() != 0;
    return count;
  };
  while (copied_leaves() < 3) {
    EXPECT_THAT(copied.Done(), Holds(false)) << copied_leaves();
    ASSERT_TRUE(device->Step(*stream));
  }
  device->RunAll();
  EXPECT_THAT(copied.Done(), Holds(true));
}

TEST_P(BufferOrderingTest, B5_NothingTheCallerDropsIsFreedWhileACopyReadsIt) {
  auto buffer = DeviceBuffer(PinnedTree({1, 1}));
  StreamHold hold = Hold(*transfer_);
  std::weak_ptr<runtime::Storage> source_storage;
  {
    ValueTree source = PinnedTree({2, 2});
    source_storage = OnlyTensor(source).storage();
    ASSERT_OK(buffer->CopyFrom(source, {.stream = transfer_.get()}));
    source = ValueTree::None();
  }
  EXPECT_FALSE(source_storage.expired());
  // Whatever was given back is handed out again, and overwritten.
  std::vector<ValueTree> scribbles;
  for (int i = 0; i < 100; ++i) scribbles.push_back(PinnedTree({9, 9}));
  hold.Release();
  ASSERT_OK(transfer_->Synchronize());
  EXPECT_EQ(ReadWords(buffer->value().value()), (Words{2, 2}));
}

TEST_P(BufferOrderingTest, B5_TheExampleIsKeptWhileTheInitialisationReadsIt) {
  StreamHold hold = Hold(*transfer_);
  std::unique_ptr<ReusableValueBuffer> buffer;
  {
    ValueTree example = PinnedTree({2, 2});
    ASSERT_OK_AND_ASSIGN(
        buffer, ReusableValueBuffer::Like(
                    example, {.placement = Placement::On(*device_), .stream = transfer_.get()}));
  }
  std::vector<ValueTree> scribbles;
  for (int i = 0; i < 100; ++i) scribbles.push_back(PinnedTree({9, 9}));
  hold.Release();
  ASSERT_OK(transfer_->Synchronize());
  EXPECT_EQ(ReadWords(buffer->value().value()), (Words{2, 2}));
}

TEST_P(BufferOrderingTest, B5_SourceOfACopyThatFailedHalfWayIsKeptToo) {
  const ValueTree example = ValueTree::List({PinnedTree({1}), PinnedTree({1})});
  auto buffer = DeviceBuffer(example);
  StreamHold hold = Hold(*transfer_);
  std::weak_ptr<runtime::Storage> source_storage;
  {
    const ValueTree source = ValueTree::List({PinnedTree({2}), PinnedTree({2})});
    source_storage = source[0].tensor().storage();
    device_->FailNth(FaultPoint::kCopy, 2, absl::InternalError("injected"));
    EXPECT_FALSE(buffer->CopyFrom(source, {.stream = transfer_.get()}).ok());
  }
  EXPECT_FALSE(source_storage.expired());
  hold.Release();
  ASSERT_OK(buffer->Close());
  EXPECT_TRUE(source_storage.expired());
}

TEST_P(BufferOrderingTest, B8_CloseWaitsForCopiesInFlight) {
  auto buffer = DeviceBuffer(PinnedTree({1}));
  ASSERT_OK_AND_ASSIGN(CopyHandle copied,
                       buffer->CopyFrom(PinnedTree({2}), {.stream = transfer_.get()}));
  ASSERT_OK(buffer->Close());
  EXPECT_THAT(copied.Done(), Holds(true));
}

// B9: the consumer is slow. Only its event, passed by the caller, keeps the next payload away from
// it.
TEST_P(BufferOrderingTest, B9_WithoutTheConsumersEventItReadsTheNextPayload) {
  auto buffer = DeviceBuffer(PinnedTree({1}));
  StreamHold hold = Hold(*compute_);
  const Tensor read = EnqueueRead(OnlyTensor(buffer->value().value()), *compute_);
  ASSERT_OK(buffer->CopyFrom(PinnedTree({2}), {.stream = transfer_.get()}));
  ASSERT_OK(transfer_->Synchronize());
  hold.Release();
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(read), (Words{2}));
}

TEST_P(BufferOrderingTest, B9_WithTheConsumersEventItReadsItsOwnPayload) {
  auto buffer = DeviceBuffer(PinnedTree({1}));
  StreamHold hold = Hold(*compute_);
  const Tensor read = EnqueueRead(OnlyTensor(buffer->value().value()), *compute_);
  const std::shared_ptr<runtime::Event> consumed = RecordedEvent(*compute_);
  ASSERT_OK(buffer->CopyFrom(PinnedTree({2}), {.stream = transfer_.get(), .wait_for = {consumed}}));
  LetEverythingRun();
  hold.Release();
  ASSERT_OK(compute_->Synchronize());
  ASSERT_OK(transfer_->Synchronize());
  EXPECT_EQ(ReadWords(read), (Words{1}));
  EXPECT_EQ(ReadWords(buffer->value().value()), (Words{2}));
}

// B10: each tile has values of its own, so that a tile read twice, or half overwritten, changes the
// sum.
TEST_P(BufferOrderingTest, B10_TwoBuffersStreamAnyNumberOfTilesThroughTwiceTheirMemory) {
  constexpr size_t kWords = 512;
  constexpr int kTiles = 60;
  const Words zeros(kWords);
  const Tensor sum = DeviceWords(zeros);
  std::vector<ValueTree> tiles;
  Words expected = zeros;
  std::mt19937_64 random(7);
  for (int i = 0; i < kTiles; ++i) {
    Words tile(kWords);
    for (size_t j = 0; j < kWords; ++j) expected[j] += tile[j] = random();
    tiles.push_back(PinnedTree(tile));
  }

  ASSERT_OK_AND_ASSIGN(MemoryFigures before, MemoryFiguresOf(*device_));
  const std::unique_ptr<ReusableValueBuffer> buffers[] = {DeviceBuffer(PinnedTree(zeros)),
                                                          DeviceBuffer(PinnedTree(zeros))};
  std::shared_ptr<runtime::Event> consumed[2];
  for (int i = 0; i < kTiles; ++i) {
    ReusableValueBuffer& buffer = *buffers[i % 2];
    execution::CopyOptions options{.stream = transfer_.get()};
    if (consumed[i % 2] != nullptr) options.wait_for = {consumed[i % 2]};
    ASSERT_OK_AND_ASSIGN(CopyHandle copied, buffer.CopyFrom(tiles[i], options));
    ASSERT_OK(copied.WaitOn(*compute_));
    ASSERT_OK_AND_ASSIGN(ValueTree tile, buffer.value());
    ASSERT_OK(AddWordsAsync(sum.data_as<uint64_t>(), sum.data_as<uint64_t>(),
                            OnlyTensor(tile).data_as<uint64_t>(), kWords, *compute_));
    consumed[i % 2] = RecordedEvent(*compute_);
    EXPECT_EQ(device_->device_memory_stats().allocated_bytes - before.device_allocated_bytes,
              2 * kWords * sizeof(uint64_t));
  }
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(sum), expected);
}

INSTANTIATE_ON_DEVICES(BufferOrderingTest);

}  // namespace
}  // namespace cipherd::testing
