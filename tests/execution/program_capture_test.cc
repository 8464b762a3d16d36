// How a program comes into being: what it takes, what each stage does, what it costs.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/execution/cuda_graph_program.h"
#include "core/value/tensor_copy.h"
#include "tests/execution/execution_fixture.h"
#include "tests/testing/test_kernels.h"

namespace cipherd::testing {
namespace {

using execution::CudaGraphProgram;
using execution::ProgramFunction;
using runtime::Stream;
using ::testing::HasSubstr;
using value::Placement;
using value::Tensor;
using value::ValueTree;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kInternal = absl::StatusCode::kInternal;

// Returns `output`, whatever the inputs.
ProgramFunction Returning(ValueTree output) {
  return
      [output](std::span<const ValueTree>, Stream&) { return absl::StatusOr<ValueTree>(output); };
}

class ProgramCaptureTest : public ExecutionTest {};

TEST_P(ProgramCaptureTest, G1_ExamplesDefineStructureAndResidency) {
  const ValueTree ciphertext = ValueTree::Value(CiphertextOf(DeviceWords({1, 2}), 3));
  ASSERT_OK_AND_ASSIGN(auto program, CudaGraphProgram::Capture(AddConstantFunction(10),
                                                               {ciphertext, DeviceTree({3})}));
  ASSERT_OK_AND_ASSIGN(
      execution::ValueTreeSignature expected,
      execution::ValueTreeSignature::FromTree(ValueTree::Tuple({ciphertext, DeviceTree({3})})));
  EXPECT_EQ(program->input_signature().value(), expected);
  EXPECT_EQ(&program->device(), device_.get());
  EXPECT_EQ(program->stats().warmup_iterations, 3);
}

TEST_P(ProgramCaptureTest, G1_RefusesWhatMakesNoProgram) {
  const ProgramFunction function = AddConstantFunction(1);
  const Tensor shared = DeviceWords({1});
  struct Case {
    ProgramFunction function;
    std::vector<ValueTree> examples;
    int warmup;
    std::string message;
  };
  const std::vector<Case> cases = {
      {nullptr, {DeviceTree({1})}, 3, "function: expected one, got none"},
      {function, {DeviceTree({1})}, -1, "warmup: expected at least 0, got -1"},
      {function, {}, 3, "example_inputs: expected at least one tensor"},
      {function, {ValueTree::List({})}, 3, "example_inputs: expected at least one tensor"},
      {function,
       {PinnedTree({1})},
       3,
       "example_inputs[0]: expected a tensor on a device, got one on host"},
      {function, {DeviceTree({1}), PinnedTree({1})}, 3, "example_inputs[1]: expected a tensor on"},
      {function,
       {ValueTree::Leaf(shared), ValueTree::Leaf(shared)},
       3,
       "example_inputs[1]: expected storage of its own, got the storage of example_inputs[0]"},
      {function, {ValueTree::Opaque("int")}, 3, "example_inputs[0]: "},
  };
  for (const Case& bad : cases) {
    EXPECT_THAT(CudaGraphProgram::Capture(bad.function, bad.examples, {.warmup = bad.warmup}),
                StatusIs(kInvalid, HasSubstr(bad.message)))
        << bad.message;
  }
  ASSERT_OK_AND_ASSIGN(std::shared_ptr<runtime::Event> other, other_device_->CreateEvent());
  EXPECT_THAT(CudaGraphProgram::Capture(function, {DeviceTree({1})}, {.wait_for = {other}}),
              StatusIs(kInvalid, HasSubstr("wait_for[0]")));
  // Tensors on two devices.
  ASSERT_OK_AND_ASSIGN(Tensor elsewhere,
                       Tensor::AllocateOn(*other_stream_, value::DType::kUint64, {1}));
  EXPECT_THAT(CudaGraphProgram::Capture(function, {DeviceTree({1}), ValueTree::Leaf(elsewhere)}),
              StatusIs(kInvalid, HasSubstr("example_inputs[1]: ")));
}

TEST_P(ProgramCaptureTest, G1_ShorthandCapturesTheFunctionItIsGiven) {
  const CudaGraphProgram::Capturer capture =
      CudaGraphProgram::Capture({DeviceTree({1, 2})}, {.warmup = 1});
  ASSERT_OK_AND_ASSIGN(auto plus_ten, capture(AddConstantFunction(10)));
  ASSERT_OK_AND_ASSIGN(auto plus_twenty, capture(AddConstantFunction(20)));
  EXPECT_EQ(plus_ten->stats().warmup_iterations, 1);
  EXPECT_EQ(ReadWords(plus_ten->output().value()), (Words{11, 12}));
  EXPECT_EQ(ReadWords(plus_twenty->output().value()), (Words{21, 22}));
}

TEST_P(ProgramCaptureTest, G1_ExamplesMayStillBeOnTheirWay) {
  const ValueTree example = DeviceTree({1});
  StreamHold hold = Hold(*transfer_);
  const Tensor late = PinnedWords({5});
  ASSERT_OK(value::CopyTensorAsync(late, OnlyTensor(example), *transfer_));
  const std::shared_ptr<runtime::Event> ready = RecordedEvent(*transfer_);
  hold.Release();
  ASSERT_OK_AND_ASSIGN(auto program, CudaGraphProgram::Capture(AddConstantFunction(1), {example},
                                                               {.wait_for = {ready}}));
  EXPECT_EQ(ReadWords(program->output().value()), (Words{6}));
}

TEST_P(ProgramCaptureTest, G2_EachWarmUpRunStartsFromTheExample) {
  // Each run changes its input in place, and keeps what it made of it.
  auto outputs = std::make_shared<std::vector<Tensor>>();
  ProgramFunction increment = [outputs, in_place = AddInPlaceFunction(1)](
                                  std::span<const ValueTree> inputs,
                                  Stream& stream) -> absl::StatusOr<ValueTree> {
    CIPHERD_ASSIGN_OR_RETURN(ValueTree output, in_place(inputs, stream));
    if (!stream.is_capturing()) outputs->push_back(OnlyTensor(output));
    return output;
  };
  ASSERT_OK_AND_ASSIGN(auto program, CudaGraphProgram::Capture(increment, {DeviceTree({7})}));
  ASSERT_EQ(outputs->size(), 3u);
  for (const Tensor& output : *outputs) EXPECT_EQ(ReadWords(output), (Words{8}));
  // Only the first replay has touched the payload that the program keeps.
  EXPECT_EQ(ReadWords(program->output().value()), (Words{8}));
}

TEST_P(ProgramCaptureTest, G2_BuffersOfWarmUpRunsAreClosed) {
  std::vector<size_t> allocated_bytes;
  ProgramFunction function = [&](std::span<const ValueTree> inputs, Stream& stream) {
    if (!stream.is_capturing()) {
      allocated_bytes.push_back(device_->device_memory_stats().allocated_bytes);
    }
    return AddConstantFunction(1)(inputs, stream);
  };
  ASSERT_OK(CudaGraphProgram::Capture(function, {DeviceTree(Words(1000))}, {.warmup = 6}));
  ASSERT_EQ(allocated_bytes.size(), 6u);
  for (size_t bytes : allocated_bytes) EXPECT_EQ(bytes, allocated_bytes[0]);
}

TEST_P(ProgramCaptureTest, G2_OutputsOfWarmUpRunsAreValidated) {
  int calls = 0;
  ProgramFunction function = [&](std::span<const ValueTree>, Stream&) {
    ++calls;
    return absl::StatusOr<ValueTree>(PinnedTree({1}));
  };
  EXPECT_THAT(CudaGraphProgram::Capture(function, {DeviceTree({1})}, {.function_name = "to_host"}),
              StatusIs(kInvalid,
                       HasSubstr("warm-up run 1 of 3 of 'to_host': output: expected a tensor on")));
  EXPECT_EQ(calls, 1);
}

TEST_P(ProgramCaptureTest, G2_NoWarmUpWhereNoneIsAskedFor) {
  int calls = 0;
  ProgramFunction function = [&](std::span<const ValueTree> inputs, Stream& stream) {
    ++calls;
    EXPECT_TRUE(stream.is_capturing());
    return AddConstantFunction(1)(inputs, stream);
  };
  ASSERT_OK_AND_ASSIGN(auto program,
                       CudaGraphProgram::Capture(function, {DeviceTree({1})}, {.warmup = 0}));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(ReadWords(program->output().value()), (Words{2}));
}

TEST_P(ProgramCaptureTest, G3_CaptureAllocatesInTheGraphsPoolAndDoesNotSynchronize) {
  int synchronizations = 0;
  ProgramFunction function = [&](std::span<const ValueTree> inputs, Stream& stream) {
    if (stream.is_capturing()) {
      synchronizations = device_->call_count(FaultPoint::kSynchronize);
    }
    return AddConstantFunction(1)(inputs, stream);
  };
  ASSERT_OK_AND_ASSIGN(auto program,
                       CudaGraphProgram::Capture(function, {DeviceTree(Words(1000))}));
  // The one of the first replay.
  EXPECT_EQ(device_->call_count(FaultPoint::kSynchronize) - synchronizations, 1);
  ASSERT_OK_AND_ASSIGN(runtime::Graph * graph, program->cuda_graph());
  EXPECT_GE(graph->pool_bytes(), 1000 * sizeof(uint64_t));
}

TEST_P(ProgramCaptureTest, G3_WhatACaptureForbidsFailsItByName) {
  ProgramFunction synchronizing = [](std::span<const ValueTree> inputs,
                                     Stream& stream) -> absl::StatusOr<ValueTree> {
    CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
    return AddConstantFunction(1)(inputs, stream);
  };
  EXPECT_THAT(CudaGraphProgram::Capture(synchronizing, {DeviceTree({1})},
                                        {.function_name = "synchronizing"}),
              StatusIs(kInternal, HasSubstr("capture of 'synchronizing' failed: ")));

  // Also where the callable carries on.
  ProgramFunction allocating = [this](std::span<const ValueTree> inputs, Stream& stream) {
    Tensor::AllocateOn(*helper_, value::DType::kUint64, {1}).IgnoreError();
    return AddConstantFunction(1)(inputs, stream);
  };
  EXPECT_THAT(
      CudaGraphProgram::Capture(allocating, {DeviceTree({1})}, {.function_name = "allocating"}),
      StatusIs(kInternal, HasSubstr("capture of 'allocating' failed: ")));
}

TEST_P(ProgramCaptureTest, G3_TheFirstReplayIsComplete) {
  ASSERT_OK_AND_ASSIGN(auto program,
                       CudaGraphProgram::Capture(AddConstantFunction(1), {DeviceTree({41})}));
  EXPECT_EQ(ReadWords(program->output().value()), (Words{42}));
  EXPECT_EQ(program->completion_event().value(), nullptr);
}

TEST_P(ProgramCaptureTest, G3_ScheduleThatDiffersBetweenRunsIsRefused) {
  int calls = 0;
  ProgramFunction shifting = [&](std::span<const ValueTree> inputs, Stream& stream) {
    const absl::StatusOr<ValueTree> output = AddConstantFunction(1)(inputs, stream);
    return ++calls < 3 ? output : absl::StatusOr<ValueTree>(ValueTree::List({*output}));
  };
  EXPECT_THAT(CudaGraphProgram::Capture(shifting, {DeviceTree({1})}),
              StatusIs(kInternal, HasSubstr("warm-up run 3 of 3 of 'function' failed")));
  calls = 0;
  EXPECT_THAT(
      CudaGraphProgram::Capture(shifting, {DeviceTree({1})}, {.warmup = 2}),
      StatusIs(kInternal, HasSubstr("the schedule is not fixed: output: expected uint64[1], got "
                                    "list[uint64[1]]")));
}

TEST_P(ProgramCaptureTest, G5_OutputIsATreeOnTheCaptureDeviceOrNothing) {
  const Tensor tensor = DeviceWords({1});
  const ValueTree leaf = ValueTree::Leaf(tensor);
  const ValueTree exact = ValueTree::Value(CiphertextOf(tensor));
  const std::vector<ValueTree> outputs = {leaf, exact, ValueTree::List({leaf, exact}),
                                          ValueTree::Tuple({leaf}),
                                          ValueTree::Dict({{"a", exact}})};
  for (const ValueTree& output : outputs) {
    ASSERT_OK_AND_ASSIGN(auto program,
                         CudaGraphProgram::Capture(Returning(output), {DeviceTree({1})}));
    ASSERT_OK_AND_ASSIGN(auto signature, program->output_signature());
    EXPECT_EQ(signature, execution::ValueTreeSignature::FromTree(output).value());
    EXPECT_OK(signature->Validate(program->output().value()));
  }
  ASSERT_OK_AND_ASSIGN(auto nothing,
                       CudaGraphProgram::Capture(Returning(ValueTree::None()), {DeviceTree({1})}));
  EXPECT_EQ(nothing->output_signature().value(), std::nullopt);
  EXPECT_EQ(nothing->output().value().kind(), value::TreeKind::kNone);
  EXPECT_OK(nothing->Replay({DeviceTree({2})}, *compute_, {.copy_output = true}));
}

TEST_P(ProgramCaptureTest, G5_OtherOutputsAreRefused) {
  ASSERT_OK_AND_ASSIGN(Tensor elsewhere,
                       Tensor::AllocateOn(*other_stream_, value::DType::kUint64, {1}));
  const std::vector<std::pair<ValueTree, std::string>> outputs = {
      {PinnedTree({1}), "output: expected a tensor on"},
      {ValueTree::List({DeviceTree({1}), ValueTree::Leaf(HostWords({1}))}), "output[1]: "},
      {ValueTree::Leaf(elsewhere), "output: expected a tensor on"},
      {ValueTree::Opaque("int"), "output: "},
      {ValueTree::List({ValueTree::None()}), "output[0]: "},
      {ValueTree::Value(value::ExactValue()), "output: "},
  };
  for (int warmup : {0, 1}) {
    for (const auto& [output, message] : outputs) {
      EXPECT_THAT(
          CudaGraphProgram::Capture(Returning(output), {DeviceTree({1})}, {.warmup = warmup}),
          StatusIs(kInvalid, HasSubstr(message)))
          << message;
    }
  }
}

TEST_P(ProgramCaptureTest, G6_StatsSayWhatTheCaptureCost) {
  base::FakeClock clock;
  ProgramFunction function = [&](std::span<const ValueTree> inputs, Stream& stream) {
    clock.Advance(absl::Seconds(stream.is_capturing() ? 5 : 2));
    return AddConstantFunction(1)(inputs, stream);
  };
  ASSERT_OK_AND_ASSIGN(auto program, CudaGraphProgram::Capture(function, {DeviceTree(Words(1000))},
                                                               {.warmup = 4, .clock = &clock}));
  const execution::CaptureStats& stats = program->stats();
  EXPECT_EQ(stats.warmup_iterations, 4);
  EXPECT_EQ(stats.warmup_seconds, 8);
  EXPECT_EQ(stats.capture_seconds, 5);
  EXPECT_EQ(stats.first_replay_seconds, 0);
  const runtime::MemoryStats memory = device_->device_memory_stats();
  EXPECT_EQ(stats.memory_reserved_bytes, memory.reserved_bytes);
  // At least input and output of the program.
  EXPECT_GE(stats.memory_allocated_bytes, 2 * 1000 * sizeof(uint64_t));
  EXPECT_LE(stats.memory_allocated_bytes, stats.memory_reserved_bytes);

  ASSERT_OK_AND_ASSIGN(auto real,
                       CudaGraphProgram::Capture(AddConstantFunction(1), {DeviceTree({1})}));
  EXPECT_GT(real->stats().first_replay_seconds, 0);
}

TEST_P(ProgramCaptureTest, G13_ReportsItself) {
  ASSERT_OK_AND_ASSIGN(
      auto program,
      CudaGraphProgram::Capture(AddConstantFunction(1), {DeviceTree({1, 2}), DeviceTree({3})}));
  EXPECT_EQ(&program->device(), device_.get());
  EXPECT_THAT(program->input_nbytes(), Holds(24));
  EXPECT_EQ(program->input_signature()->ToString(), "tuple(uint64[2], uint64[1])");
  EXPECT_EQ((*program->output_signature())->ToString(), "uint64[2]");
  ASSERT_OK_AND_ASSIGN(runtime::Graph * graph, program->cuda_graph());
  EXPECT_GE(graph->node_count(), 1u);
  EXPECT_EQ(graph->native_handle() != nullptr, GetParam() == "cuda");
}

TEST_P(ProgramCaptureTest, G13_LaunchingTheGraphDirectlyReplaysThePayloadUnchecked) {
  ASSERT_OK_AND_ASSIGN(auto program,
                       CudaGraphProgram::Capture(AddInPlaceFunction(1), {DeviceTree({0})}));
  ASSERT_OK_AND_ASSIGN(runtime::Graph * graph, program->cuda_graph());
  ASSERT_OK(graph->Launch(*compute_));
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(program->output().value()), (Words{2}));
}

TEST_P(ProgramCaptureTest, G15_EagerAndReplayedResultsAgreeBitForBit) {
  // Some schedule: sums over the inputs, some in place, on a forked stream too.
  ProgramFunction schedule = [](std::span<const ValueTree> inputs,
                                Stream& stream) -> absl::StatusOr<ValueTree> {
    const Tensor& left = OnlyTensor(inputs[0]);
    const Tensor& right = OnlyTensor(inputs[1]);
    const size_t count = static_cast<size_t>(left.element_count());
    CIPHERD_ASSIGN_OR_RETURN(Tensor sum, value::DeviceTensorLike(left, stream));
    CIPHERD_ASSIGN_OR_RETURN(Tensor twice, value::DeviceTensorLike(left, stream));
    uint64_t* const words = sum.data_as<uint64_t>();
    CIPHERD_RETURN_IF_ERROR(
        AddWordsAsync(words, left.data_as<uint64_t>(), right.data_as<uint64_t>(), count, stream));
    CIPHERD_RETURN_IF_ERROR(AddConstantAsync(words, words, 0x9e3779b97f4a7c15, count, stream));
    CIPHERD_RETURN_IF_ERROR(AddWordsAsync(twice.data_as<uint64_t>(), words, words, count, stream));
    return ValueTree::Dict(
        {{"sum", ValueTree::Value(CiphertextOf(sum, 1))}, {"twice", ValueTree::Leaf(twice)}});
  };
  ASSERT_OK_AND_ASSIGN(auto program, CudaGraphProgram::Capture(schedule, {DeviceTree(Words(100)),
                                                                          DeviceTree(Words(100))}));
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Words left(100), right(100);
    for (size_t i = 0; i < 100; ++i) {
      left[i] = seed * 0xd1342543de82ef95 * (i + 1);
      right[i] = left[i] * left[i];
    }
    const std::vector<ValueTree> inputs = {DeviceTree(left), DeviceTree(right)};
    ASSERT_OK_AND_ASSIGN(ValueTree eager, schedule(inputs, *compute_));
    ASSERT_OK_AND_ASSIGN(ValueTree replayed, program->Replay(inputs, *compute_));
    ASSERT_OK(compute_->Synchronize());
    EXPECT_EQ(execution::ValueTreeSignature::FromTree(eager).value(),
              execution::ValueTreeSignature::FromTree(replayed).value());
    for (const char* key : {"sum", "twice"}) {
      EXPECT_EQ(ReadWords(eager[key]), ReadWords(replayed[key])) << key;
    }
  }
}

INSTANTIATE_ON_DEVICES(ProgramCaptureTest);

}  // namespace
}  // namespace cipherd::testing
