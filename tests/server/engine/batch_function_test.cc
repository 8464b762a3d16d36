#include "server/engine/batch_function.h"

#include <memory>
#include <string>
#include <vector>

#include "core/execution/cuda_graph_program.h"
#include "core/value/tensor_copy.h"
#include "gtest/gtest.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::DeviceParamName;
using ::cipherd::testing::DevicesUnderTest;
using ::cipherd::testing::Download;
using ::cipherd::testing::OpenTestDevice;
using value::DType;
using value::Tensor;
using value::ValueTree;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

constexpr int kBatchSize = 4;

class BatchFunctionTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cuda") GTEST_SKIP() << "the test program runs on devices of the host";
    ASSERT_OK_AND_ASSIGN(device_, OpenTestDevice(GetParam()));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream("caller"));
    ASSERT_OK_AND_ASSIGN(binding_, program_.Bind(*device_, *stream_, {}));
    ASSERT_OK_AND_ASSIGN(function_,
                         MakeBatchFunction(binding_.make_function, kBatchSize, *device_));
  }

  // A tensor of `words` on the device, copied in the order of `stream`: not complete on return.
  Tensor Upload(const std::vector<uint64_t>& words, std::vector<int64_t> shape) {
    Tensor pinned = Tensor::AllocatePinned(*device_, DType::kUint64, shape).value();
    std::copy(words.begin(), words.end(), pinned.data_as<uint64_t>());
    Tensor tensor = Tensor::AllocateOn(*stream_, DType::kUint64, shape).value();
    EXPECT_OK(value::CopyTensorAsync(pinned, tensor, *stream_));
    sources_.push_back(pinned);
    return tensor;
  }

  // Item i has input 1000 · i and the keys of tenant seed i + 1.
  std::vector<ValueTree> Arguments() {
    std::vector<ValueTree> arguments;
    std::vector<uint64_t> table;
    for (int item = 0; item < kBatchSize; ++item) {
      std::vector<uint64_t> words(kWordCount);
      for (int64_t i = 0; i < kWordCount; ++i) words[i] = 1000 * item + i;
      arguments.push_back(ValueTree::Leaf(Upload(words, {kWordCount})));
      for (int key = 0; key < 2; ++key) {
        keys_.push_back(Upload(KeyWords(item + 1, key), {kWordCount}));
        table.push_back(reinterpret_cast<uint64_t>(keys_.back().data()));
      }
    }
    arguments.push_back(ValueTree::Leaf(Upload(table, {kBatchSize, 2})));
    return arguments;
  }

  void ExpectRight(const ValueTree& results) {
    ASSERT_EQ(results.children().size(), static_cast<size_t>(kBatchSize));
    for (int item = 0; item < kBatchSize; ++item) {
      ASSERT_OK_AND_ASSIGN(
          const std::vector<uint64_t> words,
          Download<uint64_t>(results[item][0].tensor().data(), kWordCount, *stream_));
      for (int64_t i = 0; i < kWordCount; ++i) {
        ASSERT_EQ(words[i], ExpectedWord(1000 * item, item + 1, i)) << "item " << item;
      }
    }
  }

  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Stream> stream_;
  TestProgram program_;
  ProgramBinding binding_;
  std::vector<Tensor> sources_, keys_;
  execution::ProgramFunction function_;
};

// The inputs are copied on the caller's stream, and the results read there: branches that started
// before the fork, or were not joined, show on the puppets.
TEST_P(BatchFunctionTest, EachItemHasTheResultOfItsInputsAndItsKeys) {
  const std::vector<ValueTree> arguments = Arguments();
  for (int run = 0; run < 2; ++run) {
    ASSERT_OK_AND_ASSIGN(const ValueTree results, function_(arguments, *stream_));
    ExpectRight(results);
  }
}

TEST_P(BatchFunctionTest, ACapturedBatchReplaysEveryItem) {
  const std::vector<ValueTree> arguments = Arguments();
  ASSERT_OK(stream_->Synchronize());
  ASSERT_OK_AND_ASSIGN(const auto captured,
                       execution::CudaGraphProgram::Capture(function_, arguments, {}));
  for (int run = 0; run < 2; ++run) {
    ASSERT_OK_AND_ASSIGN(const ValueTree results, captured->Replay(arguments, *stream_));
    ExpectRight(results);
  }
}

TEST_P(BatchFunctionTest, ResultsThatAreDroppedStayUntilTheCallersStreamHasReadThem) {
  const std::vector<ValueTree> arguments = Arguments();
  std::vector<Tensor> kept;
  {
    ASSERT_OK_AND_ASSIGN(const ValueTree results, function_(arguments, *stream_));
    for (int item = 0; item < kBatchSize; ++item) {
      const Tensor& result = results[item][0].tensor();
      kept.push_back(Tensor::AllocatePinned(*device_, DType::kUint64, {kWordCount}).value());
      ASSERT_OK(value::CopyTensorAsync(result, kept.back(), *stream_));
    }
  }
  // Would write over blocks that were free too early.
  ASSERT_OK(function_(arguments, *stream_).status());
  ASSERT_OK(stream_->Synchronize());
  for (int item = 0; item < kBatchSize; ++item) {
    EXPECT_EQ(kept[item].data_as<uint64_t>()[5], ExpectedWord(1000 * item, item + 1, 5));
  }
}

// The join orders the caller's stream behind the branches, not the branches behind it: a block that
// was made on a branch is free for others once the branch is idle, unless the caller's use is
// known.
TEST_P(BatchFunctionTest, BlocksOfResultsStayWithTheCallersStreamWhenTheBranchesAreIdle) {
  const std::vector<ValueTree> arguments = Arguments();
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<runtime::Event> joined, device_->CreateEvent());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<runtime::Stream> other,
                       device_->CreateStream("other"));
  std::vector<Tensor> kept;
  cipherd::testing::StreamHold hold;
  {
    ASSERT_OK_AND_ASSIGN(const ValueTree results, function_(arguments, *stream_));
    ASSERT_OK(stream_->Record(*joined));
    hold = cipherd::testing::HoldStream(*stream_);
    for (int item = 0; item < kBatchSize; ++item) {
      kept.push_back(Tensor::AllocatePinned(*device_, DType::kUint64, {kWordCount}).value());
      ASSERT_OK(value::CopyTensorAsync(results[item][0].tensor(), kept.back(), *stream_));
    }
  }
  ASSERT_OK(other->Wait(*joined));
  ASSERT_OK(other->Synchronize());
  // More than a slab of them: every block that is free is among them, and is written over.
  std::vector<Tensor> blocks;
  for (int i = 0; i < 4096; ++i) {
    blocks.push_back(Tensor::AllocateOn(*other, DType::kUint64, {kWordCount}).value());
    ASSERT_OK(other->FillAsync(blocks.back().data(), 0xff, blocks.back().bytes()));
  }
  ASSERT_OK(other->Synchronize());
  hold.Release();
  ASSERT_OK(stream_->Synchronize());
  for (int item = 0; item < kBatchSize; ++item) {
    EXPECT_EQ(kept[item].data_as<uint64_t>()[5], ExpectedWord(1000 * item, item + 1, 5))
        << "item " << item;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchFunctionTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::engine
