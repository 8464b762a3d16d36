#include "core/execution/reusable_value_buffer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/value/tensor_copy.h"
#include "tests/execution/execution_fixture.h"

namespace cipherd::testing {
namespace {

using execution::BufferOptions;
using execution::CopyHandle;
using execution::ReusableValueBuffer;
using execution::ValueTreeSignature;
using ::testing::HasSubstr;
using value::Placement;
using value::Tensor;
using value::ValueTree;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

class ReusableValueBufferTest : public ExecutionTest {
 protected:
  // tuple(tensor, list[ciphertext at `depth`]) in pinned memory.
  ValueTree Pair(const Words& tensor, const Words& ciphertext, int64_t depth = 0) {
    return ValueTree::Tuple(
        {ValueTree::Leaf(PinnedWords(tensor)),
         ValueTree::List({ValueTree::Value(CiphertextOf(PinnedWords(ciphertext), depth))})});
  }

  std::vector<Words> Payload(const ValueTree& tree) {
    std::vector<Words> payload;
    for (const Tensor* tensor : value::TensorsOf(tree)) payload.push_back(ReadWords(*tensor));
    return payload;
  }

  absl::StatusOr<std::unique_ptr<ReusableValueBuffer>> OnDevice(const ValueTree& example) {
    return ReusableValueBuffer::Like(
        example, {.placement = Placement::On(*device_), .stream = transfer_.get()});
  }
};

TEST_P(ReusableValueBufferTest, B1_OwnsStorageWithTheStructureAndPayloadOfTheExample) {
  const ValueTree example = Pair({1, 2}, {3, 4, 5});
  ASSERT_OK_AND_ASSIGN(auto buffer, OnDevice(example));
  ASSERT_OK(transfer_->Synchronize());
  ASSERT_OK_AND_ASSIGN(ValueTree tree, buffer->value());
  EXPECT_EQ(buffer->signature(), ValueTreeSignature::FromTree(example).value());
  EXPECT_OK(buffer->signature().Validate(tree));
  EXPECT_EQ(Payload(tree), (std::vector<Words>{{1, 2}, {3, 4, 5}}));
  for (const Tensor* tensor : value::TensorsOf(tree)) {
    EXPECT_EQ(tensor->placement(), Placement::On(*device_));
  }

  // The example can change without changing the buffer.
  std::fill_n(example[0].tensor().data_as<uint64_t>(), 2, 9);
  EXPECT_EQ(Payload(tree), (std::vector<Words>{{1, 2}, {3, 4, 5}}));
}

TEST_P(ReusableValueBufferTest, B1_EveryTargetTakesAnExampleFromAnywhere) {
  const std::vector<ValueTree> examples = {ValueTree::Leaf(HostWords({1, 2})), PinnedTree({1, 2}),
                                           DeviceTree({1, 2})};
  const std::vector<BufferOptions> targets = {
      {.placement = Placement::Host(), .stream = transfer_.get()},
      {.placement = Placement::Host(),
       .pin_memory = true,
       .pinned_device = device_.get(),
       .stream = transfer_.get()},
      {.placement = Placement::On(*device_), .stream = transfer_.get()},
  };
  for (const ValueTree& example : examples) {
    for (const BufferOptions& options : targets) {
      ASSERT_OK_AND_ASSIGN(auto buffer, ReusableValueBuffer::Like(example, options));
      ASSERT_OK(transfer_->Synchronize());
      ASSERT_OK_AND_ASSIGN(ValueTree tree, buffer->value());
      EXPECT_EQ(ReadWords(tree), (Words{1, 2}));
      EXPECT_EQ(buffer->placement(), *options.placement);
      EXPECT_EQ(buffer->is_pinned(), options.pin_memory);
      EXPECT_EQ(OnlyTensor(tree).is_pinned(), options.pin_memory);
      EXPECT_NE(OnlyTensor(tree).data(), OnlyTensor(example).data());
    }
  }
}

TEST_P(ReusableValueBufferTest, B1_WithoutPlacementTheTensorsMustShareOne) {
  ASSERT_OK_AND_ASSIGN(auto on_device,
                       ReusableValueBuffer::Like(DeviceTree({1}), {.stream = transfer_.get()}));
  EXPECT_EQ(on_device->placement(), Placement::On(*device_));
  ASSERT_OK_AND_ASSIGN(auto on_host, ReusableValueBuffer::Like(Pair({1}, {2}), {}));
  EXPECT_EQ(on_host->placement(), Placement::Host());
  // Pageable and pinned memory are one place.
  ASSERT_OK(ReusableValueBuffer::Like(
      ValueTree::List({ValueTree::Leaf(HostWords({1})), PinnedTree({2})}), {}));
}

TEST_P(ReusableValueBufferTest, B2_RefusesExamplesThatMakeNoBuffer) {
  const Tensor shared = HostWords({1, 2, 3});
  const Tensor shared_on_device = DeviceWords({1});
  struct Case {
    ValueTree example;
    BufferOptions options;
    std::string message;
  };
  const std::vector<Case> cases = {
      {ValueTree::Tuple({}), {}, "expected at least one tensor, got none"},
      {ValueTree::List({ValueTree::List({})}), {}, "expected at least one tensor, got none"},
      {ValueTree::List({PinnedTree({1}), DeviceTree({2})}),
       {.stream = transfer_.get()},
       "a target placement is needed: example[0] is on host, example[1] on"},
      {PinnedTree({1}),
       {.placement = Placement::On(*device_),
        .pin_memory = true,
        .pinned_device = device_.get(),
        .stream = transfer_.get()},
       "pin_memory: expected a host target"},
      {DeviceTree({1}),
       {.pin_memory = true, .pinned_device = device_.get(), .stream = transfer_.get()},
       "pin_memory: expected a host target"},
      {PinnedTree({1}), {.pin_memory = true}, "pin_memory: expected a device"},
      {ValueTree::List({ValueTree::Leaf(shared), ValueTree::Leaf(shared)}), {}, "example[1]: "},
      {ValueTree::List({ValueTree::Leaf(shared_on_device), ValueTree::Leaf(shared_on_device)}),
       {.stream = transfer_.get()},
       "example[1]: expected storage of its own"},
      {ValueTree::List({ValueTree::Opaque("int")}), {}, "example[0]: "},
      {ValueTree::None(), {}, "example: "},
      {PinnedTree({1}), {.placement = Placement::On(*device_)}, "stream: expected one of"},
      {PinnedTree({1}),
       {.placement = Placement::On(*device_), .stream = other_stream_.get()},
       "stream: expected one of"},
      {DeviceTree({1}), {.placement = Placement::Host()}, "stream: expected one of"},
  };
  ASSERT_OK_AND_ASSIGN(MemoryFigures before, MemoryFiguresOf(*device_));
  for (const Case& bad : cases) {
    EXPECT_THAT(ReusableValueBuffer::Like(bad.example, bad.options),
                StatusIs(kInvalid, HasSubstr(bad.message)))
        << bad.message;
  }
  ASSERT_OK_AND_ASSIGN(MemoryFigures after, MemoryFiguresOf(*device_));
  EXPECT_EQ(before, after);
}

TEST_P(ReusableValueBufferTest, B2_TensorsWithoutBytesMayShareStorage) {
  const Tensor empty = HostWords({});
  const ValueTree example =
      ValueTree::List({ValueTree::Leaf(empty), ValueTree::Leaf(empty), PinnedTree({1})});
  ASSERT_OK_AND_ASSIGN(auto buffer, OnDevice(example));
  ASSERT_OK_AND_ASSIGN(CopyHandle copied, buffer->CopyFrom(example, {.stream = transfer_.get()}));
  EXPECT_EQ(copied.bytes_copied(), 8);
}

TEST_P(ReusableValueBufferTest, B3_AddressesStayForTheLifeOfTheBuffer) {
  ASSERT_OK_AND_ASSIGN(auto buffer, OnDevice(Pair({1, 2}, {3})));
  auto addresses = [&] {
    std::vector<void*> result;
    const ValueTree tree = buffer->value().value();
    for (const Tensor* tensor : value::TensorsOf(tree)) result.push_back(tensor->data());
    return result;
  };
  const std::vector<void*> first = addresses();
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_OK(buffer->CopyFrom(Pair({i, i}, {i}), {.stream = transfer_.get()}));
    EXPECT_EQ(addresses(), first);
  }
  ASSERT_OK(transfer_->Synchronize());
  EXPECT_EQ(Payload(buffer->value().value()), (std::vector<Words>{{4, 4}, {4}}));
}

TEST_P(ReusableValueBufferTest, B4_CopiesEveryResidencyIntoEveryTarget) {
  const std::vector<ValueTree> sources = {ValueTree::Leaf(HostWords({5, 6})), PinnedTree({7, 8}),
                                          DeviceTree({9, 10})};
  for (const ValueTree& source : sources) {
    ASSERT_OK_AND_ASSIGN(auto on_device, OnDevice(PinnedTree({1, 2})));
    ASSERT_OK_AND_ASSIGN(CopyHandle copied,
                         on_device->CopyFrom(source, {.stream = transfer_.get()}));
    ASSERT_OK(copied.Synchronize());
    EXPECT_EQ(ReadWords(on_device->value().value()), ReadWords(source));

    ASSERT_OK_AND_ASSIGN(auto on_host, ReusableValueBuffer::Like(PinnedTree({1, 2}), {}));
    ASSERT_OK(on_host->CopyFrom(source, {}));
    EXPECT_EQ(ReadWords(on_host->value().value()), ReadWords(source));
  }
}

TEST_P(ReusableValueBufferTest, B4_StridesAreHonoured) {
  auto strided = [](uint64_t first) {
    runtime::StoragePtr storage = runtime::AllocatePageable(11 * sizeof(uint64_t)).value();
    for (uint64_t i = 0; i < 11; ++i) static_cast<uint64_t*>(storage->data())[i] = first + i;
    return ValueTree::Leaf(
        Tensor::FromStorage(std::move(storage), 0, value::DType::kUint64, {3, 2}, {4, 1}).value());
  };
  ASSERT_OK_AND_ASSIGN(auto buffer, OnDevice(strided(0)));
  ASSERT_OK_AND_ASSIGN(CopyHandle copied,
                       buffer->CopyFrom(strided(100), {.stream = transfer_.get()}));
  EXPECT_EQ(copied.bytes_copied(), 48);
  ASSERT_OK(copied.Synchronize());
  ASSERT_OK_AND_ASSIGN(ValueTree tree, buffer->value());
  EXPECT_EQ(OnlyTensor(tree).strides(), (std::vector<int64_t>{4, 1}));
  ASSERT_OK_AND_ASSIGN(Tensor back, value::HostTensorLike(OnlyTensor(tree)));
  ASSERT_OK(value::CopyTensorAsync(OnlyTensor(tree), back, *transfer_));
  ASSERT_OK(transfer_->Synchronize());
  for (uint64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(back.data_as<uint64_t>()[4 * row], 100 + 4 * row);
    EXPECT_EQ(back.data_as<uint64_t>()[4 * row + 1], 101 + 4 * row);
  }
}

TEST_P(ReusableValueBufferTest, B4_MismatchLeavesEveryByteUntouched) {
  ASSERT_OK_AND_ASSIGN(auto on_device, OnDevice(Pair({1, 2}, {3}, 3)));
  ASSERT_OK(transfer_->Synchronize());
  ASSERT_OK_AND_ASSIGN(auto on_host, ReusableValueBuffer::Like(Pair({1, 2}, {3}, 3), {}));
  const int copies = copy_count();
  // The first leaf would fit.
  const ValueTree source = Pair({8, 9}, {7}, 2);
  const auto mismatch = StatusIs(kInvalid, "source[1][0].depth: expected 3, got 2");
  EXPECT_THAT(on_device->CopyFrom(source, {.stream = transfer_.get()}), mismatch);
  EXPECT_THAT(on_host->CopyFrom(source, {}), mismatch);
  EXPECT_EQ(copy_count(), copies);
  ASSERT_OK(transfer_->Synchronize());
  EXPECT_EQ(Payload(on_device->value().value()), (std::vector<Words>{{1, 2}, {3}}));
  EXPECT_EQ(Payload(on_host->value().value()), (std::vector<Words>{{1, 2}, {3}}));
  EXPECT_THAT(on_host->CopyFrom(source, {.root_label = "tile"}),
              StatusIs(kInvalid, HasSubstr("tile[1][0].depth")));
}

TEST_P(ReusableValueBufferTest, B4_BlocksWhereAskedTo) {
  ASSERT_OK_AND_ASSIGN(auto buffer, OnDevice(PinnedTree({1})));
  ASSERT_OK_AND_ASSIGN(
      CopyHandle copied,
      buffer->CopyFrom(PinnedTree({2}), {.stream = transfer_.get(), .non_blocking = false}));
  EXPECT_THAT(copied.Done(), Holds(true));
  EXPECT_EQ(ReadWords(buffer->value().value()), (Words{2}));
}

TEST_P(ReusableValueBufferTest, B4_SourceInTheBuffersOwnStorageOnlyInItsOwnPlace) {
  ASSERT_OK_AND_ASSIGN(auto buffer, OnDevice(ValueTree::List({PinnedTree({1}), PinnedTree({2})})));
  ASSERT_OK_AND_ASSIGN(ValueTree own, buffer->value());
  const int copies = copy_count();
  ASSERT_OK(buffer->CopyFrom(own, {.stream = transfer_.get()}));
  EXPECT_THAT(
      buffer->CopyFrom(ValueTree::List({own[1], own[0]}), {.stream = transfer_.get()}),
      StatusIs(kInvalid, "source[0]: shares storage with a tensor of the buffer at another place"));
  EXPECT_EQ(copy_count(), copies);
  ASSERT_OK(transfer_->Synchronize());
  EXPECT_EQ(Payload(own), (std::vector<Words>{{1}, {2}}));
}

TEST_P(ReusableValueBufferTest, B4_CopyThatFailsHalfWayLeavesATornPayloadUntilTheNext) {
  ASSERT_OK_AND_ASSIGN(auto buffer, OnDevice(Pair({1}, {2})));
  device_->FailNth(FaultPoint::kCopy, 2, absl::InternalError("injected"));
  EXPECT_THAT(buffer->CopyFrom(Pair({3}, {4}), {.stream = transfer_.get()}),
              StatusIs(absl::StatusCode::kInternal, "injected"));
  EXPECT_THAT(buffer->payload_status(), StatusIs(kPrecondition, HasSubstr("half way")));
  ASSERT_OK(buffer->CopyFrom(Pair({5}, {6}), {.stream = transfer_.get()}));
  EXPECT_OK(buffer->payload_status());
  ASSERT_OK(transfer_->Synchronize());
  EXPECT_EQ(Payload(buffer->value().value()), (std::vector<Words>{{5}, {6}}));
}

TEST_P(ReusableValueBufferTest, B6_HostTargetTakesNoStreamOrEvents) {
  for (bool pin_memory : {false, true}) {
    ASSERT_OK_AND_ASSIGN(auto buffer, ReusableValueBuffer::Like(Pair({1}, {2}, 3),
                                                                {.pin_memory = pin_memory,
                                                                 .pinned_device = device_.get()}));
    const std::shared_ptr<runtime::Event> event = RecordedEvent(*transfer_);
    EXPECT_THAT(buffer->CopyFrom(Pair({8}, {9}, 3), {.stream = transfer_.get()}),
                StatusIs(kInvalid, HasSubstr("stream: expected none for a host target")));
    EXPECT_THAT(buffer->CopyFrom(Pair({8}, {9}, 3), {.wait_for = {event}}),
                StatusIs(kInvalid, HasSubstr("wait_for: expected none for a host target")));
    // Validation of the source comes first.
    EXPECT_THAT(buffer->CopyFrom(Pair({8}, {9}, 2), {.stream = transfer_.get()}),
                StatusIs(kInvalid, HasSubstr("depth: expected 3, got 2")));
    EXPECT_EQ(Payload(buffer->value().value()), (std::vector<Words>{{1}, {2}}));

    ASSERT_OK_AND_ASSIGN(CopyHandle copied, buffer->CopyFrom(Pair({8}, {9}, 3), {}));
    EXPECT_EQ(Payload(buffer->value().value()), (std::vector<Words>{{8}, {9}}));
    EXPECT_EQ(copied.event(), nullptr);
    EXPECT_EQ(copied.placement(), Placement::Host());
  }
}

TEST_P(ReusableValueBufferTest, B6_StreamsAndEventsOfAnotherDeviceAreRefused) {
  ASSERT_OK_AND_ASSIGN(auto buffer, OnDevice(PinnedTree({1})));
  const int copies = copy_count();
  EXPECT_THAT(buffer->CopyFrom(PinnedTree({2}), {.stream = other_stream_.get()}),
              StatusIs(kInvalid, HasSubstr("stream: expected one of")));
  EXPECT_THAT(buffer->CopyFrom(PinnedTree({2}), {}), StatusIs(kInvalid, HasSubstr("got none")));
  ASSERT_OK_AND_ASSIGN(std::shared_ptr<runtime::Event> other, other_device_->CreateEvent());
  EXPECT_THAT(buffer->CopyFrom(PinnedTree({2}), {.stream = transfer_.get(), .wait_for = {other}}),
              StatusIs(kInvalid, HasSubstr("wait_for[0]: expected an event of")));
  EXPECT_THAT(buffer->CopyFrom(PinnedTree({2}), {.stream = transfer_.get(), .wait_for = {nullptr}}),
              StatusIs(kInvalid, HasSubstr("wait_for[0]")));
  EXPECT_EQ(copy_count(), copies);
}

TEST_P(ReusableValueBufferTest, B7_ReportsItselfAndWaitsForItsOwnHandlesOnly) {
  ASSERT_OK_AND_ASSIGN(auto buffer, OnDevice(Pair({1, 2}, {3})));
  ASSERT_OK_AND_ASSIGN(auto other, OnDevice(Pair({1, 2}, {3})));
  EXPECT_THAT(buffer->nbytes(), Holds(24));
  ASSERT_OK_AND_ASSIGN(CopyHandle older,
                       buffer->CopyFrom(Pair({4, 5}, {6}), {.stream = transfer_.get()}));
  ASSERT_OK_AND_ASSIGN(CopyHandle latest,
                       buffer->CopyFrom(Pair({7, 8}, {9}), {.stream = transfer_.get()}));
  ASSERT_OK_AND_ASSIGN(CopyHandle foreign,
                       other->CopyFrom(Pair({7, 8}, {9}), {.stream = transfer_.get()}));
  EXPECT_OK(buffer->WaitFor(latest, *compute_));
  EXPECT_OK(buffer->WaitFor(older, *compute_));
  EXPECT_THAT(buffer->WaitFor(foreign, *compute_),
              StatusIs(kPrecondition, HasSubstr("another buffer")));
  EXPECT_THAT(buffer->WaitFor(latest, *other_stream_), StatusIs(kInvalid));
  EXPECT_EQ(buffer->last_copy().value(), latest);
}

TEST_P(ReusableValueBufferTest, B8_CloseIsIdempotentAndLeavesWhatTheBufferWas) {
  ASSERT_OK_AND_ASSIGN(MemoryFigures before, MemoryFiguresOf(*device_));
  ASSERT_OK_AND_ASSIGN(auto buffer, OnDevice(ValueTree::Leaf(HostWords({1, 2}))));
  const ValueTreeSignature signature = buffer->signature();
  ASSERT_OK_AND_ASSIGN(CopyHandle copied, buffer->CopyFrom(ValueTree::Leaf(HostWords({3, 4})),
                                                           {.stream = transfer_.get()}));
  EXPECT_FALSE(buffer->closed());
  ASSERT_OK(buffer->Close());
  ASSERT_OK(buffer->Close());
  EXPECT_TRUE(buffer->closed());
  EXPECT_THAT(buffer->nbytes(), StatusIs(kPrecondition, HasSubstr("closed")));
  EXPECT_THAT(buffer->value(), StatusIs(kPrecondition));
  EXPECT_THAT(buffer->last_copy(), StatusIs(kPrecondition));
  EXPECT_THAT(buffer->payload_status(), StatusIs(kPrecondition));
  EXPECT_THAT(buffer->WaitFor(copied, *compute_), StatusIs(kPrecondition));
  EXPECT_THAT(buffer->CopyFrom(ValueTree::None(), {}), StatusIs(kPrecondition));
  EXPECT_EQ(buffer->signature(), signature);
  EXPECT_EQ(buffer->placement(), Placement::On(*device_));
  EXPECT_FALSE(buffer->is_pinned());
  EXPECT_THAT(copied.Done(), Holds(true));
  ASSERT_OK_AND_ASSIGN(MemoryFigures after, MemoryFiguresOf(*device_));
  EXPECT_EQ(before, after);
}

INSTANTIATE_ON_DEVICES(ReusableValueBufferTest);

}  // namespace
}  // namespace cipherd::testing
