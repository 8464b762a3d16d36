// What the suites of the execution layer share: a device that can fail, streams, payloads of words.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/execution/program_function.h"
#include "core/execution/reusable_value_buffer.h"
#include "core/value/value_tree.h"
#include "tests/testing/devices.h"
#include "tests/testing/fault_device.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {

using Words = std::vector<uint64_t>;

// Matches a StatusOr that holds `expected`.
MATCHER_P(Holds, expected, "holds the value") {
  *result_listener << "whose status is " << std::string(arg.status().ToString());
  return arg.ok() && *arg == expected;
}

// A Ciphertext at `depth` over `data`, with the rest of its state fixed.
value::ExactValue CiphertextOf(value::Tensor data, int64_t depth = 0, double scale = 0x1p40);

// The one tensor of `tree`.
const value::Tensor& OnlyTensor(const value::ValueTree& tree);

// outputs[i] = inputs[0][i] + addend, as a new tree like inputs[0], which has one tensor.
execution::ProgramFunction AddConstantFunction(uint64_t addend);
// The same in the storage of the input, which is then copied to the output.
execution::ProgramFunction AddInPlaceFunction(uint64_t addend);

class ExecutionTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  // Destroys what the test enqueued on before the device.
  void TearDown() override;

  // Contiguous tensors with this payload, complete on return: in pageable memory, in pinned memory
  // and on the device.
  value::Tensor HostWords(const Words& words);
  value::Tensor PinnedWords(const Words& words);
  value::Tensor DeviceWords(const Words& words);
  value::ValueTree PinnedTree(const Words& words) {
    return value::ValueTree::Leaf(PinnedWords(words));
  }
  value::ValueTree DeviceTree(const Words& words) {
    return value::ValueTree::Leaf(DeviceWords(words));
  }

  // The payload of a contiguous tensor, as it is now: waits for nothing.
  Words ReadWords(const value::Tensor& tensor);
  Words ReadWords(const value::ValueTree& tree) { return ReadWords(OnlyTensor(tree)); }

  std::unique_ptr<execution::ReusableValueBuffer> DeviceBuffer(const value::ValueTree& example);
  std::unique_ptr<runtime::Stream> NewStream(std::string_view name);

  // Keeps later work on `stream` from running until released.
  StreamHold Hold(runtime::Stream& stream) { return HoldStream(FaultDevice::Unwrap(stream)); }
  // Gives work that waits for nothing every chance to run: all of it, on the eager puppet.
  void LetEverythingRun();
  // Enqueues a copy of `source` on `stream` into new pinned memory.
  value::Tensor EnqueueRead(const value::Tensor& source, runtime::Stream& stream);
  std::shared_ptr<runtime::Event> RecordedEvent(runtime::Stream& stream);

  int copy_count() const { return device_->call_count(FaultPoint::kCopy); }

  std::unique_ptr<FaultDevice> device_;
  // A device that nothing of the test may be used with.
  std::unique_ptr<runtime::Device> other_device_;
  std::unique_ptr<runtime::Stream> other_stream_;
  std::unique_ptr<runtime::Stream> transfer_;
  std::unique_ptr<runtime::Stream> compute_;
  // Carries what the helpers do.
  std::unique_ptr<runtime::Stream> helper_;
};

#define INSTANTIATE_ON_DEVICES(suite) \
  INSTANTIATE_TEST_SUITE_P(Devices, suite, ::testing::ValuesIn(DevicesUnderTest()), DeviceParamName)

}  // namespace cipherd::testing
