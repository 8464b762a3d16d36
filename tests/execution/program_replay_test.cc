// Copies, replays and borrowed outputs, with streams held in the worst place.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/execution/cuda_graph_program.h"
#include "core/value/tensor_copy.h"
#include "tests/execution/execution_fixture.h"

namespace cipherd::testing {
namespace {

using execution::CopyHandle;
using execution::CudaGraphProgram;
using ::testing::HasSubstr;
using value::Tensor;
using value::ValueTree;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

class ProgramReplayTest : public ExecutionTest {
 protected:
  // A program of inputs[0] + 10, whose payload is {0, 0} at first.
  void SetUp() override {
    ExecutionTest::SetUp();
    program_ = PlusTen();
    output_stream_ = NewStream("output");
  }
  void TearDown() override {
    program_.reset();
    output_stream_.reset();
    ExecutionTest::TearDown();
  }

  std::unique_ptr<CudaGraphProgram> PlusTen() {
    auto program = CudaGraphProgram::Capture(AddConstantFunction(10), {DeviceTree({0, 0})});
    EXPECT_OK(program);
    return *std::move(program);
  }

  // Enqueues the copy of a pinned payload on the transfer stream.
  CopyHandle Prefetch(const Words& words) {
    auto copied = program_->CopyInputsFrom({PinnedTree(words)}, {.stream = transfer_.get()});
    EXPECT_OK(copied);
    return *std::move(copied);
  }

  std::unique_ptr<CudaGraphProgram> program_;
  std::unique_ptr<runtime::Stream> output_stream_;
};

TEST_P(ProgramReplayTest, G7_CopiesWithoutReplaying) {
  const CopyHandle copied = Prefetch({1, 2});
  EXPECT_EQ(copied.bytes_copied(), 16);
  ASSERT_OK(copied.Synchronize());
  LetEverythingRun();
  EXPECT_EQ(ReadWords(program_->output().value()), (Words{10, 10}));
}

TEST_P(ProgramReplayTest, G7_TakesInputsFromAnyMemory) {
  const std::vector<ValueTree> sources = {ValueTree::Leaf(HostWords({1, 2})), PinnedTree({3, 4}),
                                          DeviceTree({5, 6})};
  for (const ValueTree& source : sources) {
    ASSERT_OK_AND_ASSIGN(CopyHandle copied,
                         program_->CopyInputsFrom({source}, {.stream = transfer_.get()}));
    ASSERT_OK_AND_ASSIGN(ValueTree output,
                         program_->ReplayPrepared(*compute_, {.copy_handle = copied}));
    ASSERT_OK(compute_->Synchronize());
    const Words expected = {ReadWords(source)[0] + 10, ReadWords(source)[1] + 10};
    EXPECT_EQ(ReadWords(output), expected);
  }
}

TEST_P(ProgramReplayTest, G7_ThePreviousReplayFinishesReadingFirst) {
  ASSERT_OK_AND_ASSIGN(ValueTree output, program_->Replay({PinnedTree({1, 1})}, *compute_));
  ASSERT_OK(compute_->Synchronize());
  StreamHold hold = Hold(*compute_);
  ASSERT_OK(program_->ReplayPrepared(*compute_));
  Prefetch({2, 2});
  LetEverythingRun();
  hold.Release();
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(output), (Words{11, 11}));
}

TEST_P(ProgramReplayTest, G7_TheCallersEventsAreWaitedForToo) {
  StreamHold hold = Hold(*compute_);
  const std::shared_ptr<runtime::Event> event = RecordedEvent(*compute_);
  ASSERT_OK_AND_ASSIGN(CopyHandle copied,
                       program_->CopyInputsFrom({PinnedTree({1, 1})},
                                                {.stream = transfer_.get(), .wait_for = {event}}));
  LetEverythingRun();
  EXPECT_THAT(copied.Done(), Holds(false));
  hold.Release();
  EXPECT_OK(copied.Synchronize());
}

TEST_P(ProgramReplayTest, G7_MismatchIsNamedFromTheInputs) {
  const ValueTree example = ValueTree::Value(CiphertextOf(DeviceWords({1}), 3));
  ASSERT_OK_AND_ASSIGN(auto program, CudaGraphProgram::Capture(AddConstantFunction(1), {example}));
  EXPECT_THAT(program->CopyInputsFrom({ValueTree::Value(CiphertextOf(PinnedWords({1}), 2))},
                                      {.stream = transfer_.get()}),
              StatusIs(kInvalid, "inputs[0].depth: expected 3, got 2"));
  EXPECT_THAT(program->CopyInputsFrom({}, {.stream = transfer_.get()}),
              StatusIs(kInvalid, "inputs.length: expected 1, got 0"));
}

TEST_P(ProgramReplayTest, G8_TheReplayWaitsForItsCopyAndTheCpuGoesOn) {
  StreamHold hold = Hold(*transfer_);
  const CopyHandle copied = Prefetch({5, 6});
  ASSERT_OK_AND_ASSIGN(ValueTree output,
                       program_->ReplayPrepared(*compute_, {.copy_handle = copied}));
  LetEverythingRun();
  EXPECT_THAT(copied.Done(), Holds(false));
  hold.Release();
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(output), (Words{15, 16}));
}

TEST_P(ProgramReplayTest, G8_OnlyTheLatestHandleOfThisProgramIsAccepted) {
  auto other = PlusTen();
  ASSERT_OK_AND_ASSIGN(CopyHandle foreign,
                       other->CopyInputsFrom({PinnedTree({1, 1})}, {.stream = transfer_.get()}));
  const CopyHandle older = Prefetch({1, 1});
  const CopyHandle latest = Prefetch({2, 2});
  const int launches = device_->call_count(FaultPoint::kGraphLaunch);
  EXPECT_THAT(program_->ReplayPrepared(*compute_),
              StatusIs(kPrecondition, HasSubstr("needs its handle")));
  EXPECT_THAT(program_->ReplayPrepared(*compute_, {.copy_handle = older}),
              StatusIs(kPrecondition, HasSubstr("got an older one")));
  EXPECT_THAT(program_->ReplayPrepared(*compute_, {.copy_handle = foreign}),
              StatusIs(kPrecondition, HasSubstr("another program")));
  EXPECT_EQ(device_->call_count(FaultPoint::kGraphLaunch), launches);

  ASSERT_OK_AND_ASSIGN(ValueTree output,
                       program_->ReplayPrepared(*compute_, {.copy_handle = latest}));
  EXPECT_THAT(program_->ReplayPrepared(*compute_, {.copy_handle = latest}),
              StatusIs(kPrecondition, HasSubstr("replayed already")));
  EXPECT_THAT(program_->ReplayPrepared(*compute_, {.copy_handle = older}), StatusIs(kPrecondition));
  EXPECT_EQ(device_->call_count(FaultPoint::kGraphLaunch), launches + 1);
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(output), (Words{12, 12}));
}

TEST_P(ProgramReplayTest, G8_WithNothingPreparedThePayloadIsReplayedAgain) {
  ASSERT_OK_AND_ASSIGN(auto program,
                       CudaGraphProgram::Capture(AddInPlaceFunction(1), {DeviceTree({5})}));
  ASSERT_OK_AND_ASSIGN(ValueTree output, program->ReplayPrepared(*compute_));
  ASSERT_OK(program->ReplayPrepared(*compute_));
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(output), (Words{8}));
}

TEST_P(ProgramReplayTest, G8_SynchronizeReturnsWhenTheOutputIsThere) {
  ASSERT_OK_AND_ASSIGN(
      ValueTree output,
      program_->ReplayPrepared(*compute_, {.copy_handle = Prefetch({1, 2}), .synchronize = true}));
  EXPECT_EQ(ReadWords(output), (Words{11, 12}));
}

TEST_P(ProgramReplayTest, G8_TornPayloadIsNotReplayed) {
  const CopyHandle prepared = Prefetch({1, 1});
  device_->FailNth(FaultPoint::kCopy, 1, absl::InternalError("injected"));
  EXPECT_FALSE(program_->CopyInputsFrom({PinnedTree({2, 2})}, {.stream = transfer_.get()}).ok());
  EXPECT_THAT(program_->ReplayPrepared(*compute_, {.copy_handle = prepared}),
              StatusIs(kPrecondition, HasSubstr("half way")));
  EXPECT_THAT(program_->ReplayPrepared(*compute_), StatusIs(kPrecondition));
  ASSERT_OK_AND_ASSIGN(ValueTree output,
                       program_->ReplayPrepared(*compute_, {.copy_handle = Prefetch({3, 3})}));
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(output), (Words{13, 13}));
}

TEST_P(ProgramReplayTest, G9_CopiesAndReplaysOnOneStream) {
  ASSERT_OK_AND_ASSIGN(ValueTree output, program_->Replay({PinnedTree({3, 4})}, *compute_));
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(output), (Words{13, 14}));
  ASSERT_OK_AND_ASSIGN(output, program_->Replay({ValueTree::Leaf(HostWords({5, 6}))}, *compute_,
                                                {.synchronize = true}));
  EXPECT_EQ(ReadWords(output), (Words{15, 16}));
}

TEST_P(ProgramReplayTest, G9_FailedValidationChangesNothing) {
  const CopyHandle prepared = Prefetch({1, 2});
  const int copies = copy_count();
  const int launches = device_->call_count(FaultPoint::kGraphLaunch);
  ASSERT_OK_AND_ASSIGN(std::shared_ptr<runtime::Event> other_event, other_device_->CreateEvent());
  EXPECT_THAT(program_->Replay({PinnedTree({9})}, *compute_),
              StatusIs(kInvalid, "inputs[0].shape: expected [2], got [1]"));
  EXPECT_THAT(program_->Replay({PinnedTree({9, 9})}, *other_stream_), StatusIs(kInvalid));
  EXPECT_THAT(program_->Replay({PinnedTree({9, 9})}, *compute_, {.wait_for = {other_event}}),
              StatusIs(kInvalid));
  EXPECT_THAT(program_->CopyInputsFrom({PinnedTree({9})}, {.stream = transfer_.get()}),
              StatusIs(kInvalid));
  EXPECT_EQ(copy_count(), copies);
  EXPECT_EQ(device_->call_count(FaultPoint::kGraphLaunch), launches);
  // The prepared copy still waits for its replay.
  ASSERT_OK_AND_ASSIGN(ValueTree output,
                       program_->ReplayPrepared(*compute_, {.copy_handle = prepared}));
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(output), (Words{11, 12}));
}

TEST_P(ProgramReplayTest, G9_ReplaySupersedesAPreparedCopy) {
  StreamHold hold = Hold(*transfer_);
  const CopyHandle prepared = Prefetch({1, 1});
  ASSERT_OK_AND_ASSIGN(ValueTree output, program_->Replay({PinnedTree({2, 2})}, *compute_));
  LetEverythingRun();
  hold.Release();
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(output), (Words{12, 12}));
  EXPECT_THAT(program_->ReplayPrepared(*compute_, {.copy_handle = prepared}),
              StatusIs(kPrecondition));
}

TEST_P(ProgramReplayTest, G10_TheBorrowedOutputKeepsItsAddressAndIsOverwritten) {
  ASSERT_OK_AND_ASSIGN(ValueTree first, program_->Replay({PinnedTree({1, 1})}, *compute_));
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(first), (Words{11, 11}));
  ASSERT_OK_AND_ASSIGN(ValueTree second, program_->Replay({PinnedTree({2, 2})}, *compute_));
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(OnlyTensor(first).data(), OnlyTensor(second).data());
  EXPECT_EQ(OnlyTensor(first).data(), OnlyTensor(program_->output().value()).data());
  EXPECT_EQ(ReadWords(first), (Words{12, 12}));
}

TEST_P(ProgramReplayTest, G10_CopyOutputGivesStorageOfItsOwn) {
  ASSERT_OK_AND_ASSIGN(ValueTree owned,
                       program_->Replay({PinnedTree({1, 1})}, *compute_, {.copy_output = true}));
  ASSERT_OK(program_->Replay({PinnedTree({2, 2})}, *compute_));
  ASSERT_OK(compute_->Synchronize());
  EXPECT_NE(OnlyTensor(owned).data(), OnlyTensor(program_->output().value()).data());
  EXPECT_EQ(ReadWords(owned), (Words{11, 11}));
  ASSERT_OK(program_->Close());
  EXPECT_EQ(ReadWords(owned), (Words{11, 11}));
}

TEST_P(ProgramReplayTest, G10_TheCompletionEventComesAfterTheClone) {
  ASSERT_OK_AND_ASSIGN(ValueTree owned,
                       program_->Replay({PinnedTree({1, 1})}, *compute_, {.copy_output = true}));
  // Another stream overwrites the output as early as it may.
  ASSERT_OK(program_->Replay({PinnedTree({2, 2})}, *output_stream_, {.synchronize = true}));
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(owned), (Words{11, 11}));
}

TEST_P(ProgramReplayTest, G10_TheCompletionEventOrdersAnOutputStream) {
  StreamHold hold = Hold(*compute_);
  ASSERT_OK_AND_ASSIGN(ValueTree output, program_->Replay({PinnedTree({3, 3})}, *compute_));
  ASSERT_OK_AND_ASSIGN(auto completion, program_->completion_event());
  ASSERT_OK(output_stream_->Wait(*completion));
  const Tensor result = EnqueueRead(OnlyTensor(output), *output_stream_);
  LetEverythingRun();
  EXPECT_THAT(completion->Query(), Holds(false));
  hold.Release();
  ASSERT_OK(output_stream_->Synchronize());
  EXPECT_EQ(ReadWords(result), (Words{13, 13}));
}

TEST_P(ProgramReplayTest, G10_TheNextReplayWaitsForTheReaderThatTheCallerNames) {
  ASSERT_OK_AND_ASSIGN(ValueTree output, program_->Replay({PinnedTree({1, 1})}, *compute_));
  ASSERT_OK_AND_ASSIGN(auto completion, program_->completion_event());
  ASSERT_OK(output_stream_->Wait(*completion));
  StreamHold hold = Hold(*output_stream_);
  const Tensor result = EnqueueRead(OnlyTensor(output), *output_stream_);
  const std::shared_ptr<runtime::Event> result_copied = RecordedEvent(*output_stream_);
  ASSERT_OK(program_->ReplayPrepared(
      *compute_, {.copy_handle = Prefetch({2, 2}), .wait_for = {result_copied}}));
  LetEverythingRun();
  hold.Release();
  ASSERT_OK(compute_->Synchronize());
  ASSERT_OK(output_stream_->Synchronize());
  EXPECT_EQ(ReadWords(result), (Words{11, 11}));
  EXPECT_EQ(ReadWords(output), (Words{12, 12}));
}

TEST_P(ProgramReplayTest, G10_OutputInTheInputsStorageIsOverwrittenByReplaysOnly) {
  ASSERT_OK_AND_ASSIGN(auto identity, CudaGraphProgram::Capture(
                                          [](std::span<const ValueTree> inputs, runtime::Stream&) {
                                            return absl::StatusOr<ValueTree>(inputs[0]);
                                          },
                                          {DeviceTree({1})}));
  ASSERT_OK_AND_ASSIGN(ValueTree output, identity->Replay({PinnedTree({2})}, *compute_));
  ASSERT_OK_AND_ASSIGN(CopyHandle copied,
                       identity->CopyInputsFrom({PinnedTree({3})}, {.stream = compute_.get()}));
  ASSERT_OK(copied.Synchronize());
  EXPECT_EQ(ReadWords(output), (Words{2}));
  ASSERT_OK(identity->ReplayPrepared(*compute_, {.copy_handle = copied, .synchronize = true}));
  EXPECT_EQ(ReadWords(output), (Words{3}));
}

TEST_P(ProgramReplayTest, G10_AReplayWhoseCloneFailsStillGuardsItsInputs) {
  ASSERT_OK(program_->Replay({PinnedTree({1, 1})}, *compute_, {.synchronize = true}));
  StreamHold hold = Hold(*compute_);
  device_->FailNth(FaultPoint::kAllocate, 1, absl::ResourceExhaustedError("injected"));
  EXPECT_THAT(program_->ReplayPrepared(*compute_, {.copy_output = true}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  Prefetch({2, 2});
  LetEverythingRun();
  hold.Release();
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(program_->output().value()), (Words{11, 11}));
}

INSTANTIATE_ON_DEVICES(ProgramReplayTest);

}  // namespace
}  // namespace cipherd::testing
