#include "core/value/tensor_copy.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/devices.h"
#include "tests/testing/fault_device.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ::testing::HasSubstr;
using value::DType;
using value::ExactValue;
using value::Tensor;
using value::ValueTree;

struct Topology {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  // Copies that it takes.
  int runs;
};

std::vector<Topology> Topologies() {
  return {
      {"contiguous", {2, 3, 4}, {12, 4, 1}, 1},
      {"transposed", {4, 3}, {1, 4}, 1},
      {"rows with gaps", {3, 4}, {6, 1}, 3},
      {"planes with gaps", {2, 3, 4}, {20, 4, 1}, 2},
      {"planes and rows with gaps", {2, 3, 4}, {30, 6, 1}, 6},
      {"every other element", {5}, {2}, 5},
      {"axis of one element", {3, 1, 4}, {6, 1000, 1}, 3},
      {"repeated rows", {3, 4}, {0, 1}, 1},
      {"overlapping windows", {3, 4}, {1, 1}, 3},
      {"scalar", {}, {}, 1},
      {"without elements", {3, 0}, {1, 1}, 0},
  };
}

// Words 1, 2, 3, ... in the whole extent, gaps included.
Tensor Numbered(const Topology& topology) {
  const int64_t words = 64;
  runtime::StoragePtr storage = runtime::AllocatePageable(words * sizeof(uint64_t)).value();
  for (int64_t i = 0; i < words; ++i) static_cast<uint64_t*>(storage->data())[i] = i + 1;
  return Tensor::FromStorage(std::move(storage), 0, DType::kUint64, topology.shape,
                             topology.strides)
      .value();
}

// Which of the words of the extent belong to elements.
std::vector<bool> ElementWords(const Tensor& tensor) {
  std::vector<bool> is_element(static_cast<size_t>(tensor.extent_bytes()) / sizeof(uint64_t));
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    int64_t rest = i, offset = 0;
    for (size_t axis = tensor.shape().size(); axis-- > 0;) {
      offset += rest % tensor.shape()[axis] * tensor.strides()[axis];
      rest /= tensor.shape()[axis];
    }
    is_element[static_cast<size_t>(offset)] = true;
  }
  return is_element;
}

class TensorCopyTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(auto inner, OpenTestDevice(GetParam()));
    device_ = std::make_unique<FaultDevice>(std::move(inner));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream("copies"));
  }

  std::unique_ptr<FaultDevice> device_;
  std::unique_ptr<runtime::Stream> stream_;
};

TEST_P(TensorCopyTest, EveryTopologyTravelsAndGapsStayUntouched) {
  for (const Topology& topology : Topologies()) {
    SCOPED_TRACE(topology.name);
    const Tensor source = Numbered(topology);
    ASSERT_OK_AND_ASSIGN(Tensor on_device, value::DeviceTensorLike(source, *stream_));
    EXPECT_EQ(on_device.strides(), source.strides());
    if (on_device.extent_bytes() > 0) {
      ASSERT_OK(stream_->FillAsync(on_device.storage()->data(), 0,
                                   static_cast<size_t>(on_device.extent_bytes())));
    }
    const int before = device_->call_count(FaultPoint::kCopy);
    ASSERT_OK(value::CopyTensorAsync(source, on_device, *stream_));
    EXPECT_EQ(device_->call_count(FaultPoint::kCopy) - before, topology.runs);
    const std::vector<bool> is_element = ElementWords(source);
    ASSERT_OK_AND_ASSIGN(std::vector<uint64_t> words,
                         Download<uint64_t>(on_device.storage()->data(), is_element.size(),
                                            FaultDevice::Unwrap(*stream_)));
    for (size_t i = 0; i < words.size(); ++i) EXPECT_EQ(words[i], is_element[i] ? i + 1 : 0) << i;
  }
}

TEST_P(TensorCopyTest, HostCopiesHonourStridesToo) {
  for (const Topology& topology : Topologies()) {
    SCOPED_TRACE(topology.name);
    const Tensor source = Numbered(topology);
    ASSERT_OK_AND_ASSIGN(Tensor target, value::PinnedTensorLike(source, *device_));
    EXPECT_TRUE(target.storage() == nullptr || target.is_pinned());
    if (target.data() == nullptr) continue;
    std::memset(target.data(), 0, static_cast<size_t>(target.extent_bytes()));
    ASSERT_OK(value::CopyTensorOnHost(source, target));
    const std::vector<bool> is_element = ElementWords(source);
    for (size_t i = 0; i < is_element.size(); ++i) {
      EXPECT_EQ(target.data_as<uint64_t>()[i], is_element[i] ? i + 1 : 0) << i;
    }
  }
}

TEST_P(TensorCopyTest, DifferentTopologiesAreRefused) {
  const Tensor source = Numbered({"", {2, 3}, {3, 1}, 1});
  const Tensor target = Numbered({"", {2, 3}, {1, 2}, 1});
  EXPECT_THAT(value::CopyTensorAsync(source, target, *stream_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected uint64[2, 3] strides [1, 2], got uint64[2, 3] strides "
                                 "[3, 1]")));
  ASSERT_OK_AND_ASSIGN(Tensor on_device, value::DeviceTensorLike(source, *stream_));
  EXPECT_THAT(value::CopyTensorOnHost(source, on_device),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(TensorCopyTest, ATreeOfAnotherStructureEnqueuesNothing) {
  const Tensor tensor = Numbered({"", {4}, {1}, 1});
  const Tensor other = Numbered({"", {5}, {1}, 1});
  ASSERT_OK_AND_ASSIGN(Tensor target, value::DeviceTensorLike(tensor, *stream_));
  const ValueTree target_tree = ValueTree::List({ValueTree::Leaf(target), ValueTree::Leaf(target)});
  EXPECT_THAT(
      value::CopyTreeAsync(ValueTree::List({ValueTree::Leaf(tensor), ValueTree::Leaf(other)}),
                           target_tree, *stream_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tensor 1")));
  EXPECT_THAT(value::CopyTreeAsync(ValueTree::Leaf(tensor), target_tree, *stream_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected 2 tensors, got 1")));
  EXPECT_EQ(device_->call_count(FaultPoint::kCopy), 0);
}

TEST_P(TensorCopyTest, Helpers_PinValueTreeClonesAnyResidency) {
  const Topology rows{"", {3, 4}, {6, 1}, 3};
  const Tensor source = Numbered(rows);
  ASSERT_OK_AND_ASSIGN(Tensor on_device, value::DeviceTensorLike(source, *stream_));
  ASSERT_OK(value::CopyTensorAsync(source, on_device, *stream_));
  ExactValue exact;
  exact.metadata.depth = 3;
  exact.tensors.emplace_back("data", on_device);
  const ValueTree tree =
      ValueTree::Dict({{"host", ValueTree::Leaf(source)}, {"device", ValueTree::Value(exact)}});

  ASSERT_OK_AND_ASSIGN(ValueTree pinned, value::PinValueTree(tree, *device_, *stream_));
  EXPECT_EQ(pinned["device"].exact_value().metadata, exact.metadata);
  for (const Tensor* clone : value::TensorsOf(pinned)) {
    EXPECT_TRUE(clone->is_pinned());
    EXPECT_EQ(clone->storage()->device(), device_.get());
    EXPECT_EQ(clone->strides(), source.strides());
    const std::vector<bool> is_element = ElementWords(source);
    for (size_t i = 0; i < is_element.size(); ++i) {
      if (is_element[i]) {
        EXPECT_EQ(clone->data_as<uint64_t>()[i], i + 1);
      }
    }
  }
}

TEST_P(TensorCopyTest, Helpers_PinValueTreeRefusesAliasesAndUnsupportedLeaves) {
  const Tensor tensor = Numbered({"", {4}, {1}, 1});
  EXPECT_THAT(
      value::PinValueTree(ValueTree::List({ValueTree::Leaf(tensor), ValueTree::Leaf(tensor)}),
                          *device_, *stream_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("value[1]")));
  EXPECT_THAT(value::PinValueTree(ValueTree::List({ValueTree::Opaque("int")}), *device_, *stream_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("value[0]")));
}

INSTANTIATE_TEST_SUITE_P(Devices, TensorCopyTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing
