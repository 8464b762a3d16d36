#include "core/programs/safetensors_writer.h"

#include <cstring>
#include <filesystem>
#include <string>

#include "core/programs/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/programs/spec_builder.h"
#include "tests/programs/temporary_directory.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::programs {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

class SafetensorsWriter : public ::testing::Test {
 protected:
  std::string path() const { return directory_.path() / "c.safetensors"; }
  TemporaryDirectory directory_;
};

TEST_F(SafetensorsWriter, WhatIsWrittenIsReadBack) {
  Constants constants;
  constants["f64"] = HostTensor<double>(value::DType::kFloat64, {2, 3}, {1, -2, 3e300, 0, 5, 6});
  constants["a \"quoted\" f32"] = HostTensor<float>(value::DType::kFloat32, {1}, {0.5f});
  constants["i64"] = Offsets({-1, int64_t{1} << 60});
  constants["i32"] = HostTensor<int32_t>(value::DType::kInt32, {3, 1}, {7, 8, -9});
  constants["empty"] = Slots({});
  ASSERT_OK(WriteSafetensors(path(), constants));
  ASSERT_OK_AND_ASSIGN(const Constants read, ReadSafetensors(path(), 1 << 20));
  ASSERT_EQ(read.size(), constants.size());
  for (const auto& [name, tensor] : constants) {
    SCOPED_TRACE(name);
    const value::Tensor& other = read.at(name);
    EXPECT_EQ(other.dtype(), tensor.dtype());
    EXPECT_EQ(other.shape(), tensor.shape());
    if (tensor.bytes() == 0) continue;
    EXPECT_EQ(std::memcmp(other.data(), tensor.data(), tensor.bytes()), 0);
  }
}

TEST_F(SafetensorsWriter, ATensorThatCannotBeReadBackLeavesNoFile) {
  Constants constants;
  constants["fine"] = Slots({1});
  constants["wrong"] = HostTensor<uint8_t>(value::DType::kUint8, {1}, {1});
  EXPECT_THAT(WriteSafetensors(path(), constants),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("constant 'wrong'")));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(SafetensorsWriter, AFileOfTheNameIsReplaced) {
  ASSERT_OK(WriteSafetensors(path(), {{"a", Slots({1, 2})}}));
  ASSERT_OK(WriteSafetensors(path(), {{"b", Slots({3})}}));
  ASSERT_OK_AND_ASSIGN(const Constants read, ReadSafetensors(path(), 1 << 20));
  EXPECT_TRUE(read.contains("b"));
  EXPECT_FALSE(read.contains("a"));
}

}  // namespace
}  // namespace cipherd::programs
