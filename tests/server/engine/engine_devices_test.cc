// An engine on several devices: where requests run. What placement decides is in placement_test.cc;
// here, that it is so.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/engine/engine_devices_fixture.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::StatusIs;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

class DeviceCountTest : public EngineDevicesTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Devices, DeviceCountTest, ::testing::Values(2, 3),
                         [](const auto& info) { return "on" + std::to_string(info.param); });

TEST_P(DeviceCountTest, AllDevicesRunAtOnceAndEveryRequestIsRight) {
  StartOn(GetParam(), OneInstance());
  gate_->Close();
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 30; ++i) calls.push_back(Run(1 + i % 3, 100 + i));
  EXPECT_TRUE(AwaitArrivals(GetParam()));
  EXPECT_EQ(arrivals(), GetParam());
  gate_->Open();
  for (const auto& call : calls) EXPECT_TRUE(call->is_correct());
  EXPECT_EQ(counts().finished.at({RequestState::kSucceeded, absl::StatusCode::kOk}), 30u);
}

TEST_P(DeviceCountTest, ManyThreadsGetRightResultsAndTheBooksBalance) {
  EngineOptions options = SmallEngine();
  options.workers = 2;
  options.queue_capacity = 64;
  // Two sets find room on each device.
  options.keys.device_budget_bytes = 2 * kSetBytes;
  StartOn(GetParam(), WithLoadCost(options, absl::Microseconds(50)));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(Run(1 + (thread + i) % 3, 1000 * thread + i)->is_correct());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < devices_.size(); ++i) {
    const KeyResidency::Stats stats = engine_->key_residency(i).stats();
    EXPECT_LE(stats.used_bytes, stats.budget_bytes);
    EXPECT_EQ(stats.budget_bytes, 2 * kSetBytes);
    EXPECT_EQ(leased(i), 0u);
    EXPECT_EQ(engine_->device_loads()->in_flight(i), 0) << "a charge is left";
  }
}

TEST_P(DeviceCountTest, AnIdleDeviceIsUsedBeforeASecondInstanceOfABusyOne) {
  StartOn(GetParam(), SmallEngine());
  for (int round = 0; round < 10; ++round) {
    gate_->Close();
    const int before = arrivals();
    std::vector<std::unique_ptr<Call>> calls;
    for (int i = 0; i < GetParam(); ++i) {
      AwaitTakers();
      calls.push_back(Run(1 + i, 10 * round + i));
      ASSERT_TRUE(AwaitArrivals(before + i + 1));
    }
    for (size_t device = 0; device < devices_.size(); ++device) EXPECT_EQ(leased(device), 1u);
    gate_->Open();
    for (const auto& call : calls) EXPECT_TRUE(call->is_correct());
  }
}

TEST_F(EngineDevicesTest, SetsOfKeysSpreadOverIdleDevices) {
  StartOn(3, WithLoadCost(OneInstance(), kForGood));
  std::vector<size_t> places = {DeviceOf(1), DeviceOf(2), DeviceOf(3)};
  std::ranges::sort(places);
  EXPECT_EQ(places, (std::vector<size_t>{0, 1, 2}));
}

TEST_F(EngineDevicesTest, ATenantSwitchCopiesNoKeyAndCapturesNothing) {
  StartOn(2, WithLoadCost(OneInstance(), kForGood));
  for (int tenant = 1; tenant <= 3; ++tenant) DeviceOf(tenant);
  const int captures_before = captures();
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(Run(1 + i % 3, i)->is_correct());
  EXPECT_EQ(loads(), 3u);
  EXPECT_EQ(captures(), captures_before);
}

TEST_F(EngineDevicesTest, RequestsWaitForTheDeviceThatHasTheirKeysWhileOthersPass) {
  StartOn(2, WithLoadCost(OneInstance(), kForGood));
  const size_t home = DeviceOf(1);
  ASSERT_EQ(DeviceOf(2), 1 - home);
  const int before = arrivals();
  gate_->Close();
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(Run(1, i));
  ASSERT_TRUE(AwaitArrivals(before + 1));
  // Its device has looked at all of them, and left two.
  auto other = Run(2, 7);
  ASSERT_TRUE(AwaitArrivals(before + 2));
  EXPECT_EQ(engine_->scheduler().queued_count(served()), 2u);
  EXPECT_EQ(leased(home), 1u);
  gate_->Open();
  for (const auto& call : calls) EXPECT_TRUE(call->is_correct());
  EXPECT_TRUE(other->is_correct());
  EXPECT_EQ(loads(), 2u);
}

TEST_F(EngineDevicesTest, AHotSetOfKeysIsCopiedToASecondDeviceOnceWaitingCostsMore) {
  StartOn(2, WithLoadCost(OneInstance(), absl::Milliseconds(20)));
  const size_t home = DeviceOf(1);
  const int before = arrivals();
  gate_->Close();
  AwaitTakers();
  auto first = Run(1, 1);
  ASSERT_TRUE(AwaitArrivals(before + 1));
  EXPECT_EQ(leased(home), 1u);
  const absl::Time start = absl::Now();
  auto second = Run(1, 2);
  ASSERT_TRUE(AwaitArrivals(before + 2)) << "nobody has looked again";
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(20));
  EXPECT_EQ(loads(1 - home), 1u);
  gate_->Open();
  EXPECT_TRUE(first->is_correct());
  EXPECT_TRUE(second->is_correct());
}

TEST_F(EngineDevicesTest, KeysForWhichNoDeviceHasRoomWaitUntilOneHas) {
  EngineOptions options = SmallEngine();
  options.keys.device_budget_bytes = kSetBytes;
  StartOn(2, options);
  const int before = arrivals();
  gate_->Close();
  auto first = Run(1, 1);
  auto second = Run(2, 2);
  ASSERT_TRUE(AwaitArrivals(before + 2));
  auto third = Run(3, 3);
  EXPECT_EQ(engine_->scheduler().queued_count(served()), 1u);
  gate_->Open();
  for (Call* call : {first.get(), second.get(), third.get()}) EXPECT_TRUE(call->is_correct());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(engine_->key_residency(i).stats().used_bytes, kSetBytes);
  }
}

TEST_F(EngineDevicesTest, ADroppedSetLeavesEveryDevice) {
  StartOn(2, OneInstance());
  const int before = arrivals();
  gate_->Close();
  auto first = Run(1, 1);
  auto second = Run(1, 2);
  ASSERT_TRUE(AwaitArrivals(before + 2));
  gate_->Open();
  EXPECT_TRUE(first->is_correct());
  EXPECT_TRUE(second->is_correct());
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(engine_->key_residency(i).stats().used_bytes, kSetBytes);
  }
  ASSERT_OK(DropTestKeys(engine_->keys(), TenantName(1), TestKeySetId(1)));
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(engine_->key_residency(i).stats().used_bytes, 0);
}

TEST_F(EngineDevicesTest, WhatWaitsForKeysThatAreDroppedGoesToAnotherDevice) {
  StartOn(2, WithLoadCost(OneInstance(), kForGood));
  ASSERT_EQ(DeviceOf(1), 0u);
  ASSERT_EQ(DeviceOf(2), 1u);
  ASSERT_EQ(DeviceOf(3), 0u);
  ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("other")));
  ASSERT_OK(engine_->LoadProgram("other"));
  const int before = arrivals();
  gate_->Close();
  auto running = Run(3, 1);
  ASSERT_TRUE(AwaitArrivals(before + 1));
  auto waiting = Run(1, 2);
  // Programs take turns, so that the second device has looked at what waits, and left it.
  for (int i = 0; i < 2; ++i) {
    RequestHead head = Head(2);
    head.program = "other";
    EXPECT_TRUE(Call(*engine_, std::move(head), i, /*tenant_seed=*/2).is_correct());
  }
  EXPECT_EQ(engine_->scheduler().queued_count(served()), 1u);
  EXPECT_EQ(arrivals(), before + 1);
  ASSERT_OK(DropTestKeys(engine_->keys(), TenantName(1), TestKeySetId(1)));
  EXPECT_TRUE(AwaitArrivals(before + 2)) << "nobody has looked again";
  gate_->Open();
  EXPECT_TRUE(running->is_correct());
  EXPECT_TRUE(waiting->is_correct());
}

TEST_F(EngineDevicesTest, ABatchLeavesNewKeysToDevicesThatCopyNone) {
  batch_sizes_ = {1, 2, 3};
  // So that both wait when the first device may take them.
  max_batch_delay_ = absl::Milliseconds(100);
  StartOn(2, WithLoadCost(OneInstance(), kForGood));
  ASSERT_EQ(DeviceOf(1), 0u);
  ASSERT_EQ(DeviceOf(2), 1u);
  ASSERT_EQ(DeviceOf(3), 0u);
  RenewKeys(2);
  ASSERT_OK(testing::PutTestKeys(engine_->keys(), TenantName(4), TestKeySetId(4), 4));
  // Now the second device has no keys, and room for both sets before it has as many as the first.
  const int before = arrivals();
  gate_->Close();
  AwaitTakers();
  auto first = Run(2, 1);
  auto second = Run(4, 2);
  EXPECT_TRUE(AwaitArrivals(before + 2)) << "one device has claimed both";
  EXPECT_EQ(leased(0), 1u);
  EXPECT_EQ(leased(1), 1u);
  gate_->Open();
  EXPECT_TRUE(first->is_correct());
  EXPECT_TRUE(second->is_correct());
}

TEST_F(EngineDevicesTest, NeedsAtLeastOneDevice) {
  EXPECT_THAT(Engine::Create(Engine::Devices(), SmallEngine(), base::Clock::Real()),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("device")));
}

}  // namespace
}  // namespace cipherd::engine
