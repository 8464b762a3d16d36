// Programs whose constants come to the device in tiles: rules are those of core/programs/
// tiled_constants.h. † seen failing with the rule taken out.
#include "core/programs/tiled_constants.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/execution/cuda_graph_program.h"
#include "core/programs/interpreter.h"
#include "core/value/tensor_copy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/programs/spec_builder.h"
#include "tests/programs/test_client.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::programs {
namespace {

using ::cipherd::testing::StatusIs;
using execution::CudaGraphProgram;
using ::testing::HasSubstr;
using Kind = OperationKind;

// Words of a limb of SmallContext, in bytes.
constexpr int64_t kLimbBytes = 256 * 8;
// Eight transforms of five diagonals and a sum, each of 4 + 2 limbs (double hoisting) at depth 0.
constexpr int kTransformCount = 8;
constexpr int64_t kTransformBytes = 5 * 6 * kLimbBytes;

// sum over i of (M_i x + c_i).
SpecBuilder ManyTransforms() {
  SpecBuilder builder(SmallContext());
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  builder.Input("x").Constant("offsets", Offsets({0, 1, 2, 3, 4}));
  std::string sum;
  for (int i = 0; i < kTransformCount; ++i) {
    std::vector<double> diagonals(5 * 128);
    for (double& number : diagonals) number = uniform(random);
    const std::string name = absl::StrCat("d", i);
    builder.Constant(name, HostTensor(value::DType::kFloat64, {5, 128}, diagonals));
    builder.Add({.name = absl::StrCat("t", i),
                 .kind = Kind::kLinearTransform,
                 .a = "x",
                 .constant = name,
                 .offsets = "offsets",
                 .baby_span = 8});
    std::string term = absl::StrCat("t", i);
    builder.Constant(absl::StrCat("c", i), Slots({uniform(random), uniform(random)}));
    builder.Add({.name = absl::StrCat("p", i),
                 .kind = Kind::kAddPlain,
                 .a = term,
                 .constant = absl::StrCat("c", i)});
    term = absl::StrCat("p", i);
    if (i > 0) {
      builder.Add({.name = absl::StrCat("s", i), .kind = Kind::kAdd, .a = sum, .b = term});
      term = absl::StrCat("s", i);
    }
    sum = term;
  }
  builder.Output(sum);
  return builder;
}

// Two tiles' worth of a transform and its sum.
constexpr int64_t kBudget = 2 * (kTransformBytes + 4 * kLimbBytes);

class TiledConstantsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, cipherd::testing::OpenTestDevice(GetParam()));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream("compute"));
    const SpecBuilder builder = ManyTransforms();
    ASSERT_OK_AND_ASSIGN(program_, CheckProgram(builder.Build(), builder.constants(),
                                                ckks::SecurityPolicy::kAllowInsecure));
    ASSERT_TRUE(program_->plans.at("t0").hoists_twice());
    ASSERT_OK_AND_ASSIGN(context_,
                         ckks::DeviceContext::Create(program_->context, *device_, *stream_));
    ASSERT_OK_AND_ASSIGN(client_, TestClient::Make(program_, 1, *stream_));
  }

  absl::StatusOr<std::shared_ptr<const Interpreter>> Make(int64_t budget) {
    return Interpreter::Make(program_, *context_, *stream_, {.constant_budget_bytes = budget});
  }

  absl::StatusOr<std::vector<value::ValueTree>> Inputs(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    ComplexSlots slots(128);
    for (std::complex<double>& slot : slots) slot = uniform(random);
    return client_->Encrypt({{"x", slots}});
  }

  absl::StatusOr<std::vector<uint64_t>> Words(const value::ValueTree& outputs) {
    CIPHERD_ASSIGN_OR_RETURN(
        const value::Tensor tensor,
        value::CopyToHost(*outputs[0].exact_value().FindTensor("data"), *stream_));
    const uint64_t* data = tensor.data_as<uint64_t>();
    return std::vector<uint64_t>(data, data + tensor.element_count());
  }

  static absl::StatusOr<std::unique_ptr<CudaGraphProgram>> Capture(
      const std::shared_ptr<const Interpreter>& interpreter,
      std::vector<value::ValueTree> examples) {
    CIPHERD_ASSIGN_OR_RETURN(execution::ProgramFunction function, interpreter->MakeFunction());
    return CudaGraphProgram::Capture(std::move(function), std::move(examples));
  }

  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Stream> stream_;
  std::shared_ptr<const CheckedProgram> program_;
  std::unique_ptr<ckks::DeviceContext> context_;
  std::unique_ptr<TestClient> client_;
};

TEST_P(TiledConstantsTest, BudgetsDecideWhetherConstantsAreResident) {
  const int64_t all = kTransformCount * (kTransformBytes + 4 * kLimbBytes);
  ASSERT_OK_AND_ASSIGN(const auto resident, Make(all));
  EXPECT_EQ(resident->constant_bytes(), all);
  EXPECT_EQ(resident->tile_count(), 0);
  ASSERT_OK_AND_ASSIGN(const auto tiled, Make(all - 1));
  EXPECT_EQ(tiled->constant_bytes(), 0);
  EXPECT_EQ(tiled->tile_count(), 3);
  ASSERT_OK_AND_ASSIGN(const auto least, Make(kBudget));
  EXPECT_EQ(least->tile_count(), kTransformCount);
  EXPECT_EQ(least->tile_bytes(), kBudget / 2);
}

// † (a) the stream waits for its tile, (b) a copy waits for the readers of what it overwrites.
TEST_P(TiledConstantsTest, ResultsAreThoseOfResidentConstantsBitForBit) {
  ASSERT_OK_AND_ASSIGN(const auto resident, Make(INT64_MAX));
  ASSERT_OK_AND_ASSIGN(const auto resident_function, resident->MakeFunction());
  for (const int64_t budget : {kBudget, 2 * kBudget, 3 * kBudget}) {
    ASSERT_OK_AND_ASSIGN(const auto tiled, Make(budget));
    ASSERT_OK_AND_ASSIGN(const auto tiled_function, tiled->MakeFunction());
    for (uint64_t seed : {1, 2, 3}) {
      ASSERT_OK_AND_ASSIGN(const auto inputs, Inputs(seed));
      ASSERT_OK_AND_ASSIGN(const value::ValueTree expected, resident_function(inputs, *stream_));
      ASSERT_OK_AND_ASSIGN(const auto expected_words, Words(expected));
      ASSERT_OK_AND_ASSIGN(const value::ValueTree actual, tiled_function(inputs, *stream_));
      ASSERT_OK_AND_ASSIGN(const auto actual_words, Words(actual));
      EXPECT_EQ(actual_words, expected_words) << "budget " << budget;
    }
  }
}

TEST_P(TiledConstantsTest, AGraphCopiesTheTilesAtEachReplay) {
  ASSERT_OK_AND_ASSIGN(const auto resident, Make(INT64_MAX));
  ASSERT_OK_AND_ASSIGN(const auto resident_function, resident->MakeFunction());
  ASSERT_OK_AND_ASSIGN(const auto tiled, Make(kBudget));
  ASSERT_OK_AND_ASSIGN(std::vector<value::ValueTree> inputs, Inputs(1));
  ASSERT_OK_AND_ASSIGN(const auto captured, Capture(tiled, inputs));
  for (uint64_t seed : {4, 5, 6}) {
    ASSERT_OK_AND_ASSIGN(inputs, Inputs(seed));
    ASSERT_OK_AND_ASSIGN(const value::ValueTree expected, resident_function(inputs, *stream_));
    ASSERT_OK_AND_ASSIGN(const auto expected_words, Words(expected));
    ASSERT_OK_AND_ASSIGN(const value::ValueTree replayed, captured->Replay(inputs, *stream_));
    ASSERT_OK_AND_ASSIGN(const auto replayed_words, Words(replayed));
    EXPECT_EQ(replayed_words, expected_words);
  }
}

TEST_P(TiledConstantsTest, EvaluationsInARowDoNotOverwriteEachOthersTiles) {
  ASSERT_OK_AND_ASSIGN(const auto tiled, Make(kBudget));
  ASSERT_OK_AND_ASSIGN(const auto tiled_function, tiled->MakeFunction());
  ASSERT_OK_AND_ASSIGN(const auto a, Inputs(7));
  ASSERT_OK_AND_ASSIGN(const auto b, Inputs(8));
  ASSERT_OK_AND_ASSIGN(const value::ValueTree alone, tiled_function(a, *stream_));
  ASSERT_OK_AND_ASSIGN(const auto expected, Words(alone));
  ASSERT_OK_AND_ASSIGN(const value::ValueTree first, tiled_function(a, *stream_));
  ASSERT_OK_AND_ASSIGN(const value::ValueTree second, tiled_function(b, *stream_));
  ASSERT_OK_AND_ASSIGN(const auto words, Words(first));
  EXPECT_EQ(words, expected);
}

// † (c) The first copies wait for what is on the stream: the buffers may have memory that work
// there still reads.
TEST_P(TiledConstantsTest, CopiesWaitForTheLastReadersOfTheBuffersMemory) {
  ASSERT_OK_AND_ASSIGN(const auto tiled, Make(kBudget));
  ASSERT_OK_AND_ASSIGN(const auto tiled_function, tiled->MakeFunction());
  ASSERT_OK_AND_ASSIGN(const auto inputs, Inputs(11));
  const size_t bytes = static_cast<size_t>(tiled->tile_bytes());
  ASSERT_OK_AND_ASSIGN(const runtime::StoragePtr seen, device_->AllocatePinned(2 * bytes));
  {
    ASSERT_OK_AND_ASSIGN(const runtime::StoragePtr a, device_->Allocate(bytes, *stream_));
    ASSERT_OK_AND_ASSIGN(const runtime::StoragePtr b, device_->Allocate(bytes, *stream_));
    ASSERT_OK(stream_->FillAsync(a->data(), 0x5a, bytes));
    ASSERT_OK(stream_->FillAsync(b->data(), 0x5a, bytes));
    ASSERT_OK(stream_->Synchronize());
    auto* target = static_cast<uint8_t*>(seen->data());
    ASSERT_OK(stream_->CopyAsync(target, a->data(), bytes));
    ASSERT_OK(stream_->CopyAsync(target + bytes, b->data(), bytes));
  }
  ASSERT_OK_AND_ASSIGN(const value::ValueTree outputs, tiled_function(inputs, *stream_));
  ASSERT_OK(stream_->Synchronize());
  const auto* words = static_cast<const uint8_t*>(seen->data());
  EXPECT_TRUE(std::all_of(words, words + 2 * bytes, [](uint8_t byte) { return byte == 0x5a; }));
}

TEST_P(TiledConstantsTest, AnEvaluationHoldsTwoTilesOfDeviceMemory) {
  ASSERT_OK_AND_ASSIGN(const auto inputs, Inputs(9));
  const auto peak_of = [&](int64_t budget) -> absl::StatusOr<int64_t> {
    CIPHERD_ASSIGN_OR_RETURN(const auto interpreter, Make(budget));
    // In one block after another, so that only the difference counts.
    const size_t before = device_->device_memory_stats().allocated_bytes;
    CIPHERD_ASSIGN_OR_RETURN(const auto captured, Capture(interpreter, inputs));
    CIPHERD_RETURN_IF_ERROR(captured->Replay(inputs, *stream_).status());
    CIPHERD_RETURN_IF_ERROR(stream_->Synchronize());
    return static_cast<int64_t>(device_->device_memory_stats().allocated_bytes - before);
  };
  ASSERT_OK_AND_ASSIGN(const int64_t resident, peak_of(INT64_MAX));
  ASSERT_OK_AND_ASSIGN(const int64_t tiled, peak_of(kBudget));
  EXPECT_GE(tiled - resident, kBudget);
  // The allocator rounds.
  EXPECT_LE(tiled - resident, kBudget + 8192);
}

TEST_P(TiledConstantsTest, ThreadsCaptureAndReplayOneInterpreterAtOnce) {
  ASSERT_OK_AND_ASSIGN(const auto resident, Make(INT64_MAX));
  ASSERT_OK_AND_ASSIGN(const auto resident_function, resident->MakeFunction());
  ASSERT_OK_AND_ASSIGN(const auto tiled, Make(kBudget));
  ASSERT_OK_AND_ASSIGN(const auto inputs, Inputs(10));
  ASSERT_OK_AND_ASSIGN(const value::ValueTree outputs, resident_function(inputs, *stream_));
  ASSERT_OK_AND_ASSIGN(const auto expected, Words(outputs));
  constexpr int kThreads = 4;
  std::vector<absl::StatusOr<std::unique_ptr<CudaGraphProgram>>> captured(kThreads);
  // A puppet is stepped by one thread at a time.
  if (GetParam() == "cpu" || GetParam() == "cuda") {
    std::vector<std::thread> threads;
    for (auto& program : captured) {
      threads.emplace_back([&] { program = Capture(tiled, inputs); });
    }
    for (std::thread& thread : threads) thread.join();
  } else {
    for (auto& program : captured) program = Capture(tiled, inputs);
  }
  for (auto& program : captured) {
    ASSERT_OK(program.status());
    ASSERT_OK_AND_ASSIGN(const value::ValueTree replayed, (*program)->Replay(inputs, *stream_));
    ASSERT_OK_AND_ASSIGN(const auto words, Words(replayed));
    EXPECT_EQ(words, expected);
  }
}

TEST_P(TiledConstantsTest, AnOperationThatFillsMoreThanABufferIsRefusedByName) {
  EXPECT_THAT(Make(kTransformBytes),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr(absl::StrCat("operation 't0', constant 'd0': expected at most ",
                                              kTransformBytes / 2, " bytes"))));
}

INSTANTIATE_TEST_SUITE_P(Devices, TiledConstantsTest,
                         ::testing::ValuesIn(cipherd::testing::DevicesUnderTest()),
                         cipherd::testing::DeviceParamName);

}  // namespace
}  // namespace cipherd::programs
