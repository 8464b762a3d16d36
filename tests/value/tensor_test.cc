#include "core/value/tensor.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using value::DType;
using value::Placement;
using value::Tensor;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST(TensorTest, StridesOfAContiguousTensorAreRowMajor) {
  EXPECT_THAT(value::ContiguousStrides({2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(value::ContiguousStrides({}), ElementsAre());
  EXPECT_THAT(value::ContiguousStrides({3, 0, 2}), ElementsAre(2, 2, 1));
}

TEST(TensorTest, AViewSeesItsPartOfTheStorage) {
  ASSERT_OK_AND_ASSIGN(runtime::StoragePtr storage, runtime::AllocatePageable(64));
  ASSERT_OK_AND_ASSIGN(Tensor view, Tensor::FromStorage(storage, 16, DType::kUint32, {2, 3}));
  EXPECT_EQ(view.data(), static_cast<char*>(storage->data()) + 16);
  EXPECT_EQ(view.element_count(), 6);
  EXPECT_EQ(view.bytes(), 24);
  EXPECT_EQ(view.extent_bytes(), 24);
  EXPECT_TRUE(view.is_contiguous());
  EXPECT_TRUE(view.placement().is_host());
  EXPECT_FALSE(view.is_pinned());
  EXPECT_EQ(view.placement().ToString(), "host");
}

TEST(TensorTest, GapsCountForTheExtentAndNotForTheBytes) {
  ASSERT_OK_AND_ASSIGN(runtime::StoragePtr storage, runtime::AllocatePageable(64));
  ASSERT_OK_AND_ASSIGN(Tensor view,
                       Tensor::FromStorage(storage, 0, DType::kUint64, {2, 3}, {5, 1}));
  EXPECT_EQ(view.bytes(), 48);
  EXPECT_EQ(view.extent_bytes(), 64);
  EXPECT_FALSE(view.is_contiguous());
}

TEST(TensorTest, StrideOfAnAxisOfOneElementDoesNotMatter) {
  ASSERT_OK_AND_ASSIGN(runtime::StoragePtr storage, runtime::AllocatePageable(24));
  ASSERT_OK_AND_ASSIGN(Tensor view,
                       Tensor::FromStorage(storage, 0, DType::kUint64, {1, 3}, {kHuge, 1}));
  EXPECT_TRUE(view.is_contiguous());
  EXPECT_EQ(view.extent_bytes(), 24);
}

TEST(TensorTest, TensorWithoutElementsHasNoAddress) {
  ASSERT_OK_AND_ASSIGN(Tensor empty, Tensor::AllocateHost(DType::kUint64, {4, 0}));
  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_EQ(empty.bytes(), 0);
  EXPECT_TRUE(empty.is_contiguous());
  EXPECT_EQ(Tensor().data(), nullptr);
  EXPECT_TRUE(Tensor().placement().is_host());
}

TEST(TensorTest, RefusesWhatDoesNotFitItsStorage) {
  ASSERT_OK_AND_ASSIGN(runtime::StoragePtr storage, runtime::AllocatePageable(64));
  struct Case {
    int64_t byte_offset;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    std::string message;
  };
  const std::vector<Case> cases = {
      {0, {2}, {1, 1}, "1 dimensions but 2 strides"},
      {0, {-1}, {1}, "negative"},
      {0, {2}, {-1}, "negative"},
      {4, {1}, {1}, "multiple of 8 bytes, got 4"},
      {-8, {1}, {1}, "multiple of 8 bytes, got -8"},
      {0, {9}, {1}, "ends at byte 72 of a storage of 64"},
      {8, {8}, {1}, "ends at byte 72"},
      {0, {2, 2}, {8, 1}, "ends at byte 80"},
      {kHuge - 7, {8}, {1}, "of a storage of 64"},
      {0, {kHuge, 2}, {0, 0}, "exceeds 2^63 - 1 bytes"},
      {0, {3}, {kHuge}, "exceed 2^63 - 1 bytes"},
      {0, {2, 2}, {kHuge, kHuge}, "exceed 2^63 - 1 bytes"},
      {0, {kHuge / 8 + 1}, {1}, "exceeds 2^63 - 1 bytes"},
  };
  for (const Case& bad : cases) {
    EXPECT_THAT(
        Tensor::FromStorage(storage, bad.byte_offset, DType::kUint64, bad.shape, bad.strides),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad.message)))
        << bad.message;
  }
  EXPECT_THAT(Tensor::FromStorage(nullptr, 0, DType::kUint64, {0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Tensor::FromStorage(storage, 0, DType::kUint64, {kHuge, kHuge}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Tensor::AllocateHost(DType::kComplex128, {kHuge / 16 + 1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TensorTest, EveryDTypeHasASizeAndAName) {
  const std::vector<std::pair<DType, int64_t>> sizes = {
      {DType::kUint8, 1},  {DType::kInt32, 4},   {DType::kUint32, 4},  {DType::kInt64, 8},
      {DType::kUint64, 8}, {DType::kFloat32, 4}, {DType::kFloat64, 8}, {DType::kComplex128, 16}};
  for (const auto& [dtype, bytes] : sizes) {
    EXPECT_EQ(value::ElementBytes(dtype), bytes) << dtype;
    EXPECT_THAT(std::string(value::ToString(dtype)), HasSubstr(std::to_string(bytes * 8)));
  }
}

class TensorOnDeviceTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TensorOnDeviceTest, KnowsWhereItIs) {
  ASSERT_OK_AND_ASSIGN(auto device, OpenTestDevice(GetParam()));
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("stream"));
  ASSERT_OK_AND_ASSIGN(Tensor on_device, Tensor::AllocateOn(*stream, DType::kFloat64, {3}));
  EXPECT_EQ(on_device.placement(), Placement::On(*device));
  EXPECT_EQ(on_device.placement().ToString(), device->id().ToString());
  EXPECT_FALSE(on_device.is_pinned());
  ASSERT_OK_AND_ASSIGN(Tensor pinned, Tensor::AllocatePinned(*device, DType::kFloat64, {3}));
  EXPECT_EQ(pinned.placement(), Placement::Host());
  EXPECT_TRUE(pinned.is_pinned());
}

INSTANTIATE_TEST_SUITE_P(Devices, TensorOnDeviceTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing
