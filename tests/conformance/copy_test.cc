#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {
class CopyTest : public ::testing::TestWithParam<std::string> {};
TEST_P(CopyTest, RoundTrip) {
  ASSERT_OK_AND_ASSIGN(auto device, OpenTestDevice(GetParam()));
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("compute"));
  ASSERT_OK_AND_ASSIGN(auto block, Upload<int>({1, 2, 3}, *device, *stream));
  ASSERT_OK_AND_ASSIGN(std::vector<int> back, Download<int>(block->data(), 3, *stream));
  EXPECT_EQ(back, (std::vector<int>{1, 2, 3}));
}
INSTANTIATE_TEST_SUITE_P(Devices, CopyTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);
}  // namespace
}  // namespace cipherd::testing
