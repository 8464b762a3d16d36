// Who may use a program when, what it keeps alive, and what its end leaves behind.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/execution/cuda_graph_program.h"
#include "core/value/tensor_copy.h"
#include "tests/execution/execution_fixture.h"
#include "tests/testing/test_kernels.h"

namespace cipherd::testing {
namespace {

using execution::CopyHandle;
using execution::CudaGraphProgram;
using execution::ProgramFunction;
using runtime::Stream;
using ::testing::HasSubstr;
using value::Tensor;
using value::ValueTree;

constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

// inputs[0] + the words at `addend`, which the caller keeps alive.
ProgramFunction AddWordsAt(const uint64_t* addend) {
  return [addend](std::span<const ValueTree> inputs, Stream& stream) -> absl::StatusOr<ValueTree> {
    const Tensor& input = OnlyTensor(inputs[0]);
    CIPHERD_ASSIGN_OR_RETURN(Tensor sum, value::DeviceTensorLike(input, stream));
    CIPHERD_RETURN_IF_ERROR(AddWordsAsync(sum.data_as<uint64_t>(), input.data_as<uint64_t>(),
                                          addend, input.element_count(), stream));
    return ValueTree::Leaf(sum);
  };
}

class ProgramLifetimeTest : public ExecutionTest {
 protected:
  std::unique_ptr<CudaGraphProgram> Capture(ProgramFunction function) {
    auto program = CudaGraphProgram::Capture(std::move(function), {DeviceTree({0, 0})});
    EXPECT_OK(program);
    return *std::move(program);
  }
};

TEST_P(ProgramLifetimeTest, G11_ASecondThreadIsRefusedAndChangesNothing) {
  auto program = Capture(AddConstantFunction(10));
  StreamHold hold = Hold(*compute_);
  absl::StatusOr<ValueTree> output = absl::UnknownError("not replayed");
  const int launches = device_->call_count(FaultPoint::kGraphLaunch);
  std::thread first([&, input = PinnedTree({1, 2})] {
    output = program->Replay({input}, *compute_, {.synchronize = true});
  });
  // Once it has launched it stays inside until the stream is released.
  while (device_->call_count(FaultPoint::kGraphLaunch) == launches) std::this_thread::yield();

  const auto refused = StatusIs(kPrecondition, HasSubstr("another thread"));
  const ValueTree input = PinnedTree({3, 4});
  EXPECT_THAT(program->output(), refused);
  EXPECT_THAT(program->completion_event(), refused);
  EXPECT_THAT(program->cuda_graph(), refused);
  EXPECT_THAT(program->CopyInputsFrom({input}, {.stream = transfer_.get()}), refused);
  EXPECT_THAT(program->ReplayPrepared(*transfer_), refused);
  EXPECT_THAT(program->Replay({input}, *transfer_), refused);
  if (!HasFailure()) {  // else it would wait for the release
    EXPECT_THAT(program->Close(), refused);
  }
  EXPECT_THAT(program->input_nbytes(), Holds(16));
  hold.Release();
  first.join();
  ASSERT_OK(output);
  EXPECT_EQ(ReadWords(*output), (Words{11, 12}));
  EXPECT_OK(program->Replay({input}, *compute_, {.synchronize = true}));
}

TEST_P(ProgramLifetimeTest, G11_ThreadsThatShareAnInstanceGetRightResultsOrRefusals) {
  auto program = Capture(AddConstantFunction(10));
  constexpr int kThreads = 3;
  std::atomic<int> served = 0, refused = 0;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kThreads; ++i) streams.push_back(NewStream("worker"));
  auto work = [&](uint64_t worker) {
    Stream& stream = *streams[worker];
    for (uint64_t i = 0; i < 50; ++i) {
      const uint64_t word = 1000 * worker + i;
      absl::StatusOr<ValueTree> output = program->Replay(
          {PinnedTree({word, word})}, stream, {.copy_output = true, .synchronize = true});
      if (!output.ok()) {
        EXPECT_THAT(output, StatusIs(kPrecondition, HasSubstr("another thread")));
        ++refused;
        continue;
      }
      const Tensor result = EnqueueRead(OnlyTensor(*output), stream);
      EXPECT_OK(stream.Synchronize());
      EXPECT_EQ(ReadWords(result), (Words{word + 10, word + 10}));
      ++served;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(served, 0);
  EXPECT_EQ(served + refused, kThreads * 50);
}

TEST_P(ProgramLifetimeTest, G11_IndependentInstancesRunConcurrently) {
  auto held = Capture(AddConstantFunction(10));
  auto free = Capture(AddConstantFunction(20));
  StreamHold hold = Hold(*compute_);
  ASSERT_OK_AND_ASSIGN(ValueTree held_output, held->Replay({PinnedTree({1, 1})}, *compute_));
  ASSERT_OK_AND_ASSIGN(ValueTree free_output,
                       free->Replay({PinnedTree({1, 1})}, *transfer_, {.synchronize = true}));
  ASSERT_OK_AND_ASSIGN(auto completion, held->completion_event());
  EXPECT_THAT(completion->Query(), Holds(false));
  hold.Release();
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(held_output), (Words{11, 11}));
  EXPECT_EQ(ReadWords(free_output), (Words{21, 21}));
}

TEST_P(ProgramLifetimeTest, G11_WorkersWithInstancesOfTheirOwnDoNotDisturbEachOther) {
  constexpr int kWorkers = 3;
  std::vector<std::unique_ptr<CudaGraphProgram>> programs;
  std::vector<std::unique_ptr<Stream>> transfers, computes;
  for (int i = 0; i < kWorkers; ++i) {
    programs.push_back(Capture(AddConstantFunction(i)));
    transfers.push_back(NewStream("transfer of a worker"));
    computes.push_back(NewStream("compute of a worker"));
  }
  auto work = [&](uint64_t worker) {
    for (uint64_t i = 0; i < 50; ++i) {
      absl::StatusOr<CopyHandle> copied = programs[worker]->CopyInputsFrom(
          {PinnedTree({i, i + 1})}, {.stream = transfers[worker].get()});
      ASSERT_OK(copied);
      absl::StatusOr<ValueTree> output =
          programs[worker]->ReplayPrepared(*computes[worker], {.copy_handle = *copied});
      ASSERT_OK(output);
      const Tensor result = EnqueueRead(OnlyTensor(*output), *computes[worker]);
      ASSERT_OK(computes[worker]->Synchronize());
      ASSERT_EQ(ReadWords(result), (Words{i + worker, i + worker + 1}));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

TEST_P(ProgramLifetimeTest, G11_ReplaysOnTwoStreamsComeOneAfterTheOther) {
  auto program = Capture(AddInPlaceFunction(1));
  StreamHold hold = Hold(*compute_);
  ASSERT_OK_AND_ASSIGN(ValueTree output, program->Replay({PinnedTree({100, 100})}, *compute_));
  ASSERT_OK(program->ReplayPrepared(*transfer_));
  LetEverythingRun();
  hold.Release();
  ASSERT_OK(compute_->Synchronize());
  ASSERT_OK(transfer_->Synchronize());
  EXPECT_EQ(ReadWords(output), (Words{102, 102}));
}

TEST_P(ProgramLifetimeTest, G12_StaticStateOfTheCallableLivesAsLongAsTheProgram) {
  std::weak_ptr<runtime::Storage> storage;
  std::unique_ptr<CudaGraphProgram> program;
  {
    const Tensor weights = DeviceWords({100, 200});
    storage = weights.storage();
    program = Capture([weights](std::span<const ValueTree> inputs, Stream& stream) {
      return AddWordsAt(weights.data_as<uint64_t>())(inputs, stream);
    });
  }
  EXPECT_FALSE(storage.expired());
  // Memory that was given back would be handed out again here.
  const ValueTree scribble = DeviceTree({9, 9});
  ASSERT_OK_AND_ASSIGN(ValueTree output,
                       program->Replay({PinnedTree({1, 2})}, *compute_, {.synchronize = true}));
  EXPECT_EQ(ReadWords(output), (Words{101, 202}));
  ASSERT_OK(program->Close());
  EXPECT_TRUE(storage.expired());
}

TEST_P(ProgramLifetimeTest, G12_CapturedReadOfFreedStorageIsRefused) {
  std::optional<Tensor> weights = DeviceWords({100, 200});
  auto program = Capture(AddWordsAt(weights->data_as<uint64_t>()));
  ASSERT_OK_AND_ASSIGN(ValueTree output,
                       program->Replay({PinnedTree({1, 2})}, *compute_, {.synchronize = true}));
  ASSERT_OK_AND_ASSIGN(CopyHandle prepared,
                       program->CopyInputsFrom({PinnedTree({3, 4})}, {.stream = transfer_.get()}));
  weights.reset();
  const int copies = copy_count();
  const int launches = device_->call_count(FaultPoint::kGraphLaunch);
  EXPECT_THAT(program->ReplayPrepared(*compute_, {.copy_handle = prepared}),
              StatusIs(kPrecondition));
  EXPECT_THAT(program->Replay({PinnedTree({5, 6})}, *compute_), StatusIs(kPrecondition));
  EXPECT_EQ(copy_count(), copies);
  EXPECT_EQ(device_->call_count(FaultPoint::kGraphLaunch), launches);
  EXPECT_EQ(ReadWords(output), (Words{101, 202}));
}

TEST_P(ProgramLifetimeTest, G12_LivenessIsCheckedOnlyWhereAskedFor) {
  std::optional<Tensor> unread = DeviceWords({100, 200});
  // Zero words of it are read: nothing happens to a replay after its end.
  ProgramFunction function = [address = unread->data_as<uint64_t>()](
                                 std::span<const ValueTree> inputs,
                                 Stream& stream) -> absl::StatusOr<ValueTree> {
    CIPHERD_RETURN_IF_ERROR(stream.DeclareAccess({{{address, sizeof(uint64_t), false}}}));
    return AddConstantFunction(1)(inputs, stream);
  };
  ASSERT_OK_AND_ASSIGN(auto checked, CudaGraphProgram::Capture(function, {DeviceTree({1})}));
  ASSERT_OK_AND_ASSIGN(auto unchecked, CudaGraphProgram::Capture(function, {DeviceTree({1})},
                                                                 {.check_input_liveness = false}));
  unread.reset();
  EXPECT_THAT(checked->ReplayPrepared(*compute_), StatusIs(kPrecondition));
  EXPECT_OK(unchecked->ReplayPrepared(*compute_));
}

TEST_P(ProgramLifetimeTest, G14_CloseWaitsForTheLastReplayAndItsClone) {
  auto program = Capture(AddConstantFunction(10));
  const ValueTree input = DeviceTree({1, 2});
  ASSERT_OK_AND_ASSIGN(ValueTree owned, program->Replay({input}, *compute_, {.copy_output = true}));
  ASSERT_OK_AND_ASSIGN(auto completion, program->completion_event());
  ASSERT_OK(program->Close());
  EXPECT_THAT(completion->Query(), Holds(true));
  EXPECT_EQ(ReadWords(owned), (Words{11, 12}));
}

TEST_P(ProgramLifetimeTest, G14_CloseWaitsForACopyThatWasNeverReplayed) {
  auto program = Capture(AddConstantFunction(10));
  ASSERT_OK_AND_ASSIGN(CopyHandle prepared,
                       program->CopyInputsFrom({PinnedTree({3, 4})}, {.stream = transfer_.get()}));
  ASSERT_OK(program->Close());
  EXPECT_THAT(prepared.Done(), Holds(true));
}

TEST_P(ProgramLifetimeTest, G14_CloseGivesEverythingBackAndIsIdempotent) {
  ASSERT_OK_AND_ASSIGN(MemoryFigures before, MemoryFiguresOf(*device_));
  {
    ASSERT_OK_AND_ASSIGN(auto program, CudaGraphProgram::Capture(AddConstantFunction(10),
                                                                 {DeviceTree(Words(1000))}));
    ASSERT_OK(program->Replay({DeviceTree(Words(1000))}, *compute_));
    ASSERT_OK(program->Close());
    ASSERT_OK_AND_ASSIGN(MemoryFigures after, MemoryFiguresOf(*device_));
    EXPECT_EQ(before, after);
    EXPECT_OK(program->Close());
  }
  {  // Destruction closes.
    ASSERT_OK_AND_ASSIGN(auto program, CudaGraphProgram::Capture(AddConstantFunction(10),
                                                                 {DeviceTree(Words(1000))}));
    ASSERT_OK(program->Replay({DeviceTree(Words(1000))}, *compute_));
  }
  ASSERT_OK_AND_ASSIGN(MemoryFigures after, MemoryFiguresOf(*device_));
  EXPECT_EQ(before, after);
}

TEST_P(ProgramLifetimeTest, G14_AfterwardsOnlyDeviceAndStatsAnswer) {
  auto program = Capture(AddConstantFunction(10));
  ASSERT_OK_AND_ASSIGN(CopyHandle prepared,
                       program->CopyInputsFrom({PinnedTree({3, 4})}, {.stream = transfer_.get()}));
  ASSERT_OK(program->Close());
  const auto closed = StatusIs(kPrecondition, HasSubstr("closed"));
  EXPECT_THAT(program->input_signature(), closed);
  EXPECT_THAT(program->input_nbytes(), closed);
  EXPECT_THAT(program->output_signature(), closed);
  EXPECT_THAT(program->output(), closed);
  EXPECT_THAT(program->completion_event(), closed);
  EXPECT_THAT(program->cuda_graph(), closed);
  EXPECT_THAT(program->CopyInputsFrom({PinnedTree({1, 1})}, {.stream = transfer_.get()}), closed);
  EXPECT_THAT(program->ReplayPrepared(*compute_, {.copy_handle = prepared}), closed);
  EXPECT_THAT(program->Replay({PinnedTree({1, 1})}, *compute_), closed);
  EXPECT_EQ(&program->device(), device_.get());
  EXPECT_EQ(program->stats().warmup_iterations, 3);
}

TEST_P(ProgramLifetimeTest, G14_CloseReportsAFailureAndIsClosedAllTheSame) {
  ASSERT_OK_AND_ASSIGN(MemoryFigures before, MemoryFiguresOf(*device_));
  auto program = Capture(AddConstantFunction(10));
  ASSERT_OK(program->Replay({PinnedTree({1, 1})}, *compute_));
  device_->FailNth(FaultPoint::kSynchronize, 1, absl::InternalError("injected"));
  EXPECT_THAT(program->Close(), StatusIs(absl::StatusCode::kInternal, "injected"));
  EXPECT_OK(program->Close());
  ASSERT_OK_AND_ASSIGN(MemoryFigures after, MemoryFiguresOf(*device_));
  EXPECT_EQ(before, after);
}

INSTANTIATE_ON_DEVICES(ProgramLifetimeTest);

}  // namespace
}  // namespace cipherd::testing
