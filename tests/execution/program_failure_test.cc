// G4: whatever fails while a program is built, the device is left as it was.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/execution/cuda_graph_program.h"
#include "tests/execution/execution_fixture.h"

namespace cipherd::testing {
namespace {

using execution::CudaGraphProgram;
using execution::ProgramFunction;
using runtime::Stream;
using ::testing::HasSubstr;
using ::testing::Not;
using value::ValueTree;

const absl::Status kInjected = absl::ResourceExhaustedError("injected");

class ProgramFailureTest : public ExecutionTest {
 protected:
  void SetUp() override {
    ExecutionTest::SetUp();
    example_ = DeviceTree(Words(1000, 7));
  }
  void TearDown() override {
    example_ = ValueTree::None();
    ExecutionTest::TearDown();
  }

  absl::Status Capture(const ProgramFunction& function, int warmup = 3) {
    return CudaGraphProgram::Capture(function, {example_}, {.warmup = warmup}).status();
  }

  // Does it a hundred times: each attempt fails as said, and none keeps memory.
  void ExpectNothingKept(const std::function<absl::Status()>& attempt, absl::StatusCode code,
                         const std::string& message) {
    ASSERT_OK_AND_ASSIGN(MemoryFigures before, MemoryFiguresOf(*device_));
    for (int i = 0; i < 100; ++i) {
      ASSERT_THAT(attempt(), StatusIs(code, HasSubstr(message))) << i;
      ASSERT_OK_AND_ASSIGN(MemoryFigures after, MemoryFiguresOf(*device_));
      ASSERT_EQ(before, after) << i;
    }
    ASSERT_OK_AND_ASSIGN(auto program,
                         CudaGraphProgram::Capture(AddConstantFunction(1), {example_}));
    EXPECT_EQ(ReadWords(program->output().value()), Words(1000, 8));
  }

  // AddConstantFunction, but for the call with this number (from 1).
  ProgramFunction FailingAtCall(int call, const absl::StatusOr<ValueTree>& result) {
    auto calls = std::make_shared<int>(0);
    return [=](std::span<const ValueTree> inputs, Stream& stream) {
      absl::StatusOr<ValueTree> output = AddConstantFunction(1)(inputs, stream);
      return ++*calls == call ? result : output;
    };
  }

  ValueTree example_;
};

TEST_P(ProgramFailureTest, G4_FailureInWarmUpKeepsNothing) {
  ExpectNothingKept([&] { return Capture(FailingAtCall(2, kInjected)); },
                    absl::StatusCode::kInternal,
                    "warm-up run 2 of 3 of 'function' failed: RESOURCE_EXHAUSTED: injected");
}

TEST_P(ProgramFailureTest, G4_FailureInCaptureKeepsNothing) {
  ExpectNothingKept([&] { return Capture(FailingAtCall(4, kInjected)); },
                    absl::StatusCode::kInternal,
                    "capture of 'function' failed: RESOURCE_EXHAUSTED: injected");
}

TEST_P(ProgramFailureTest, G4_RefusedOutputKeepsNothing) {
  const ValueTree on_host = PinnedTree({1});
  ExpectNothingKept([&] { return Capture(FailingAtCall(1, on_host)); },
                    absl::StatusCode::kInvalidArgument, "warm-up run 1 of 3 of 'function': output");
  ExpectNothingKept([&] { return Capture(FailingAtCall(1, on_host), /*warmup=*/0); },
                    absl::StatusCode::kInvalidArgument, "capture of 'function': output");
}

TEST_P(ProgramFailureTest, G4_FailureInTheFirstReplayKeepsNothing) {
  ExpectNothingKept(
      [&] {
        device_->FailNth(FaultPoint::kGraphLaunch, 1, kInjected);
        return Capture(AddConstantFunction(1));
      },
      absl::StatusCode::kInternal,
      "first replay of 'function' failed: RESOURCE_EXHAUSTED: injected");
}

TEST_P(ProgramFailureTest, G4_FailureOfAnySingleCallKeepsNothing) {
  auto attempt = [&] {
    return CudaGraphProgram::Capture(AddConstantFunction(1), {example_}, {.warmup = 2});
  };
  ASSERT_OK(attempt());
  ASSERT_OK_AND_ASSIGN(MemoryFigures before, MemoryFiguresOf(*device_));
  for (int i = 0; i < static_cast<int>(FaultPoint::kCount); ++i) {
    const FaultPoint point = static_cast<FaultPoint>(i);
    const int calls_before = device_->call_count(point);
    ASSERT_OK_AND_ASSIGN(auto program, attempt());
    const int calls = device_->call_count(point) - calls_before;
    program.reset();
    for (int n = 1; n <= calls; ++n) {
      device_->FailNth(point, n, kInjected);
      EXPECT_THAT(attempt(), Not(IsOk())) << ToString(point) << " " << n << " of " << calls;
      ASSERT_OK_AND_ASSIGN(MemoryFigures after, MemoryFiguresOf(*device_));
      EXPECT_EQ(before, after) << ToString(point) << " " << n << " of " << calls;
    }
  }
  EXPECT_OK(attempt());
}

INSTANTIATE_ON_DEVICES(ProgramFailureTest);

}  // namespace
}  // namespace cipherd::testing
