#include "core/runtime/host/puppet_device.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "core/runtime/host/stream_gate.h"
#include "core/runtime/host/task_stream.h"
#include "gtest/gtest.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::runtime::host {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PuppetDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(PuppetOrder::kLate); }

  void Open(PuppetOrder order) {
    a_.reset();
    b_.reset();
    device_.reset();
    device_ = PuppetDevice::Open({.order = order}, testing::SmallPools()).value();
    a_ = device_->CreateStream("a").value();
    b_ = device_->CreateStream("b").value();
    event_ = device_->CreateEvent().value();
  }

  // Appends `label` to log_ when it runs.
  void Log(Stream& stream, char label) {
    ASSERT_OK(stream.LaunchHost([this, label] { log_.push_back(label); }));
  }

  std::vector<char> log_;
  std::unique_ptr<PuppetDevice> device_;
  std::unique_ptr<Stream> a_;
  std::unique_ptr<Stream> b_;
  std::shared_ptr<Event> event_;
};

TEST_F(PuppetDeviceTest, NothingRunsUntilItIsStepped) {
  Log(*a_, '1');
  Log(*a_, '2');
  EXPECT_FALSE(a_->Query().value());
  EXPECT_THAT(log_, ElementsAre());
  EXPECT_EQ(device_->PendingCount(*a_), 2u);
  EXPECT_TRUE(device_->Step(*a_));
  EXPECT_THAT(log_, ElementsAre('1'));
  EXPECT_EQ(device_->RunUntilIdle(*a_), 1u);
  EXPECT_FALSE(device_->Step(*a_));
  EXPECT_TRUE(a_->Query().value());
}

TEST_F(PuppetDeviceTest, AStreamThatWaitsCannotBeStepped) {
  Log(*a_, '1');
  ASSERT_OK(a_->Record(*event_));
  ASSERT_OK(b_->Wait(*event_));
  Log(*b_, '2');
  EXPECT_FALSE(device_->Step(*b_));
  EXPECT_EQ(device_->RunUntilIdle(*b_), 0u);
  EXPECT_TRUE(device_->Step(*a_));
  EXPECT_FALSE(device_->Step(*b_));
  EXPECT_TRUE(device_->Step(*a_));
  EXPECT_EQ(device_->RunUntilIdle(*b_), 2u);
  EXPECT_THAT(log_, ElementsAre('1', '2'));
}

TEST_F(PuppetDeviceTest, RunAllRunsEverythingThatWaitsAllow) {
  Log(*a_, '1');
  ASSERT_OK(a_->Record(*event_));
  ASSERT_OK(b_->Wait(*event_));
  Log(*b_, '2');
  EXPECT_EQ(device_->RunAll(), 4u);
  EXPECT_THAT(log_, ElementsAre('1', '2'));
}

TEST_F(PuppetDeviceTest, ALateBlockingCallRunsOnlyWhatItNeeds) {
  Log(*a_, '1');
  ASSERT_OK(a_->Record(*event_));
  Log(*a_, '2');
  Log(*b_, '3');
  ASSERT_OK(b_->Wait(*event_));
  Log(*b_, '4');
  Log(*b_, '5');
  ASSERT_OK(b_->Synchronize());
  EXPECT_THAT(log_, ElementsAre('3', '1', '4', '5'));
  ASSERT_OK(a_->Synchronize());
  EXPECT_THAT(log_, ElementsAre('3', '1', '4', '5', '2'));
}

TEST_F(PuppetDeviceTest, AnEagerBlockingCallRunsEverythingElseFirst) {
  Open(PuppetOrder::kEager);
  Log(*a_, '1');
  ASSERT_OK(a_->Record(*event_));
  Log(*b_, '2');
  ASSERT_OK(b_->Wait(*event_));
  Log(*b_, '3');
  Log(*a_, '4');
  EXPECT_THAT(log_, ElementsAre());
  ASSERT_OK(a_->Synchronize());
  // b runs up to its wait, then a step by step with b ahead wherever it may.
  EXPECT_THAT(log_, ElementsAre('2', '1', '3', '4'));
}

TEST_F(PuppetDeviceTest, ABlockingCallOnAHeldStreamWaitsForTheRelease) {
  auto gate = std::make_unique<StreamGate>(static_cast<HostStream&>(*a_));
  Log(*a_, '1');
  std::thread waiter([&] { EXPECT_OK(a_->Synchronize()); });
  gate->Release();
  waiter.join();
  EXPECT_THAT(log_, ElementsAre('1'));
}

TEST_F(PuppetDeviceTest, AGraphRunsNodesThatNothingOrdersInReverse) {
  auto joined = device_->CreateEvent().value();
  ASSERT_OK(a_->BeginCapture(false));
  ASSERT_OK(a_->Record(*event_));
  ASSERT_OK(b_->Wait(*event_));
  Log(*b_, '1');
  Log(*b_, '2');
  ASSERT_OK(b_->Record(*joined));
  Log(*a_, '3');
  ASSERT_OK(a_->Wait(*joined));
  Log(*a_, '4');
  ASSERT_OK_AND_ASSIGN(auto graph, a_->EndCapture());
  ASSERT_OK(graph->Launch(*a_));
  EXPECT_TRUE(device_->Step(*a_));
  EXPECT_THAT(log_, ElementsAre('3', '1', '2', '4'));
}

}  // namespace
}  // namespace cipherd::runtime::host
