// The puppet followed what a query or a blocking call waited for to the lock of a hold, and
// released it itself: held work ran, and an ordering fault behind the hold went unseen.
#include <atomic>
#include <string>
#include <thread>

#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

class PuppetHoldTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PuppetHoldTest, QueriesDoNotReleaseAHold) {
  ASSERT_OK_AND_ASSIGN(auto device, OpenTestDevice(GetParam()));
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("held"));
  ASSERT_OK_AND_ASSIGN(auto event, device->CreateEvent());
  StreamHold hold = HoldStream(*stream);
  ASSERT_OK(stream->Record(*event));
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK_AND_ASSIGN(bool is_complete, event->Query());
    ASSERT_FALSE(is_complete) << i;
  }
  hold.Release();
  EXPECT_OK(event->Synchronize());
}

TEST_P(PuppetHoldTest, BlockingCallsWaitForTheRelease) {
  ASSERT_OK_AND_ASSIGN(auto device, OpenTestDevice(GetParam()));
  ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("held"));
  std::atomic<bool> is_released = false;
  StreamHold hold = HoldStream(*stream);
  std::thread releaser([&] {
    is_released = true;
    hold.Release();
  });
  EXPECT_OK(stream->Synchronize());
  EXPECT_TRUE(is_released);
  releaser.join();
}

INSTANTIATE_TEST_SUITE_P(Devices, PuppetHoldTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing
