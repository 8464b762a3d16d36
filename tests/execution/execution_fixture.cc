#include "tests/execution/execution_fixture.h"

#include <cstring>
#include <utility>

#include "core/base/status_macros.h"
#include "core/value/tensor_copy.h"
#include "tests/testing/test_kernels.h"

namespace cipherd::testing {

using execution::ProgramFunction;
using execution::ReusableValueBuffer;
using runtime::Stream;
using value::DType;
using value::Placement;
using value::Tensor;
using value::ValueTree;

value::ExactValue CiphertextOf(Tensor data, int64_t depth, double scale) {
  value::ExactValue ciphertext;
  ciphertext.context_id = std::string(64, 'a');
  ciphertext.metadata.depth = depth;
  ciphertext.metadata.scale = scale;
  ciphertext.metadata.prime_ids = {0, 1};
  ciphertext.metadata.domain = value::PolynomialDomain::kNtt;
  ciphertext.metadata.basis = value::ModulusBasis::kQ;
  ciphertext.metadata.residue_representation = value::ResidueRepresentation::kStandard;
  ciphertext.tensors.emplace_back("data", std::move(data));
  return ciphertext;
}

const Tensor& OnlyTensor(const ValueTree& tree) {
  const std::vector<const Tensor*> tensors = value::TensorsOf(tree);
  EXPECT_EQ(tensors.size(), 1u);
  return *tensors[0];
}

ProgramFunction AddConstantFunction(uint64_t addend) {
  return [addend](std::span<const ValueTree> inputs, Stream& stream) -> absl::StatusOr<ValueTree> {
    return value::MapTensors(
        inputs[0], "input", [&](const std::string&, const Tensor& input) -> absl::StatusOr<Tensor> {
          CIPHERD_ASSIGN_OR_RETURN(Tensor sum, value::DeviceTensorLike(input, stream));
          CIPHERD_RETURN_IF_ERROR(AddConstantAsync(sum.data_as<uint64_t>(),
                                                   input.data_as<uint64_t>(), addend,
                                                   sum.element_count(), stream));
          return sum;
        });
  };
}

ProgramFunction AddInPlaceFunction(uint64_t addend) {
  return [addend](std::span<const ValueTree> inputs, Stream& stream) -> absl::StatusOr<ValueTree> {
    return value::MapTensors(
        inputs[0], "input", [&](const std::string&, const Tensor& input) -> absl::StatusOr<Tensor> {
          CIPHERD_ASSIGN_OR_RETURN(Tensor copy, value::DeviceTensorLike(input, stream));
          CIPHERD_RETURN_IF_ERROR(AddConstantAsync(input.data_as<uint64_t>(),
                                                   input.data_as<uint64_t>(), addend,
                                                   input.element_count(), stream));
          CIPHERD_RETURN_IF_ERROR(value::CopyTensorAsync(input, copy, stream));
          return copy;
        });
  };
}

void ExecutionTest::SetUp() {
  ASSERT_OK_AND_ASSIGN(auto inner, OpenTestDevice(GetParam()));
  device_ = std::make_unique<FaultDevice>(std::move(inner));
  ASSERT_OK_AND_ASSIGN(other_device_, OpenTestDevice("puppet"));
  ASSERT_OK_AND_ASSIGN(other_stream_, other_device_->CreateStream("other"));
  transfer_ = NewStream("transfer");
  compute_ = NewStream("compute");
  helper_ = NewStream("helper");
}

void ExecutionTest::TearDown() {
  transfer_.reset();
  compute_.reset();
  helper_.reset();
  other_stream_.reset();
}

Tensor ExecutionTest::HostWords(const Words& words) {
  Tensor tensor =
      Tensor::AllocateHost(DType::kUint64, {static_cast<int64_t>(words.size())}).value();
  if (!words.empty()) std::memcpy(tensor.data(), words.data(), words.size() * sizeof(uint64_t));
  return tensor;
}

Tensor ExecutionTest::PinnedWords(const Words& words) {
  Tensor tensor = value::PinnedTensorLike(HostWords(words), *device_).value();
  if (!words.empty()) std::memcpy(tensor.data(), words.data(), words.size() * sizeof(uint64_t));
  return tensor;
}

Tensor ExecutionTest::DeviceWords(const Words& words) {
  const Tensor source = PinnedWords(words);
  Tensor tensor = value::DeviceTensorLike(source, *helper_).value();
  EXPECT_OK(value::CopyTensorAsync(source, tensor, *helper_));
  EXPECT_OK(helper_->Synchronize());
  return tensor;
}

Words ExecutionTest::ReadWords(const Tensor& tensor) {
  EXPECT_TRUE(tensor.is_contiguous());
  const size_t count = static_cast<size_t>(tensor.element_count());
  if (tensor.placement().is_host()) {
    return {tensor.data_as<uint64_t>(), tensor.data_as<uint64_t>() + count};
  }
  absl::StatusOr<Words> words = Download<uint64_t>(tensor.data(), count, *helper_);
  EXPECT_OK(words);
  return words.value_or(Words());
}

std::unique_ptr<ReusableValueBuffer> ExecutionTest::DeviceBuffer(const ValueTree& example) {
  auto buffer = ReusableValueBuffer::Like(
      example, {.placement = Placement::On(*device_), .stream = helper_.get()});
  EXPECT_OK(buffer);
  EXPECT_OK(helper_->Synchronize());
  return *std::move(buffer);
}

std::unique_ptr<Stream> ExecutionTest::NewStream(std::string_view name) {
  auto stream = device_->CreateStream(name);
  EXPECT_OK(stream);
  return *std::move(stream);
}

void ExecutionTest::LetEverythingRun() {
  auto probe = NewStream("probe");
  Tensor scratch = Tensor::AllocateOn(*probe, DType::kUint8, {1 << 12}).value();
  for (uint8_t i = 0; i < 3; ++i) {
    EXPECT_OK(probe->FillAsync(scratch.data(), i, static_cast<size_t>(scratch.bytes())));
    EXPECT_OK(probe->Synchronize());
  }
}

Tensor ExecutionTest::EnqueueRead(const Tensor& source, Stream& stream) {
  Tensor target = value::PinnedTensorLike(source, *device_).value();
  EXPECT_OK(value::CopyTensorAsync(source, target, stream));
  return target;
}

std::shared_ptr<runtime::Event> ExecutionTest::RecordedEvent(Stream& stream) {
  std::shared_ptr<runtime::Event> event = device_->CreateEvent().value();
  EXPECT_OK(stream.Record(*event));
  return event;
}

}  // namespace cipherd::testing
