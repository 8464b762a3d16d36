// An engine on several devices. What placement decides is in placement_test.cc; here, that it is
// so.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "server/engine/failure_reason.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/testing/fault_device.h"

namespace cipherd::engine {
namespace {

using ::cipherd::engine::testing::Call;
using ::cipherd::engine::testing::DropTestKeys;
using ::cipherd::engine::testing::EngineTest;
using ::cipherd::engine::testing::SmallEngine;
using ::cipherd::engine::testing::TestKeySetId;
using ::cipherd::engine::testing::TestProgram;
using ::cipherd::testing::FaultDevice;
using ::cipherd::testing::FaultPoint;
using ::cipherd::testing::MemoryFigures;
using ::cipherd::testing::MemoryFiguresOf;
using ::cipherd::testing::StatusIs;

// Of the two keys of a test's set.
constexpr int64_t kSetBytes = 2 * testing::kWordCount * sizeof(uint64_t);

// One instance a device: what runs at once, runs on as many devices.
EngineOptions OneInstance() {
  EngineOptions options = SmallEngine();
  options.instances = 1;
  options.queue_capacity = 64;
  return options;
}

// Loading a set costs `cost`.
EngineOptions WithLoadCost(EngineOptions options, absl::Duration cost) {
  options.keys.load_bytes_per_second = kSetBytes / absl::ToDoubleSeconds(cost);
  return options;
}

// So long that nobody waits it out.
constexpr absl::Duration kForGood = absl::Hours(10);

class EngineDevicesTest : public EngineTest {
 protected:
  void StartOn(int device_count, const EngineOptions& options) {
    Engine::Devices devices;
    for (int i = 0; i < device_count; ++i) {
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> device,
                           cipherd::testing::OpenTestDevice("cpu:" + std::to_string(i)));
      auto faulty = std::make_unique<FaultDevice>(std::move(device));
      devices_.push_back(faulty.get());
      devices.push_back(std::move(faulty));
    }
    Start(std::move(devices), options);
    arrivals_at_start_ = gate_->arrivals();
  }

  // Runs of the program that have come to the gate.
  int arrivals() { return gate_->arrivals() - arrivals_at_start_; }
  // False where it does not come to be; then the gate is open, so that the test can end.
  bool Eventually(const std::function<bool()>& is_so) {
    const absl::Time give_up = absl::Now() + absl::Seconds(20);
    while (!is_so()) {
      if (absl::Now() > give_up) {
        gate_->Open();
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }
  // Every worker asks for work, which only those do whose threads have come so far: the state that
  // placement is decided by.
  void AwaitTakers() {
    const int workers = static_cast<int>(engine_->workers().size());
    ASSERT_TRUE(Eventually([&] { return engine_->scheduler().taking_count() == workers; }));
  }
  bool AwaitArrivals(int count) {
    return Eventually([&] { return arrivals() >= count; });
  }

  uint64_t loads(size_t device) { return engine_->key_residency(device).stats().loads; }
  uint64_t loads() {
    uint64_t sum = 0;
    for (size_t i = 0; i < devices_.size(); ++i) sum += loads(i);
    return sum;
  }
  int captures() {
    int sum = 0;
    for (FaultDevice* device : devices_) sum += device->call_count(FaultPoint::kBeginCapture);
    return sum;
  }
  size_t leased(size_t device) {
    size_t sum = 0;
    for (const auto& worker : engine_->workers()) {
      if (worker->device_index() == device) sum += worker->instance_counts(served()).leased;
    }
    return sum;
  }
  // Where a set of `tenant` is, and nobody else's; the one device that has loaded it.
  size_t DeviceOf(int tenant) {
    AwaitTakers();
    std::vector<uint64_t> before;
    for (size_t i = 0; i < devices_.size(); ++i) before.push_back(loads(i));
    EXPECT_TRUE(Run(tenant, 1)->is_correct());
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (loads(i) > before[i]) return i;
    }
    ADD_FAILURE() << "loaded nowhere";
    return 0;
  }
  // As if they had never been used.
  void RenewKeys(int tenant) {
    ASSERT_OK(DropTestKeys(engine_->keys(), TenantName(tenant), TestKeySetId(tenant)));
    ASSERT_OK(testing::PutTestKeys(engine_->keys(), TenantName(tenant), TestKeySetId(tenant),
                                   static_cast<uint64_t>(tenant)));
  }
  std::vector<MemoryFigures> MemoryOfAll() {
    std::vector<MemoryFigures> figures;
    for (FaultDevice* device : devices_) figures.push_back(MemoryFiguresOf(*device).value());
    return figures;
  }
  bool AllWorkersServe() {
    return std::ranges::all_of(engine_->workers(),
                               [](const auto& worker) { return worker->is_healthy(); });
  }

  ServingSettings Serving(const EngineOptions& options) override {
    ServingSettings settings = EngineTest::Serving(options);
    settings.batch_sizes = batch_sizes_;
    settings.max_batch_delay = max_batch_delay_;
    return settings;
  }

  std::vector<int> batch_sizes_ = {1};
  absl::Duration max_batch_delay_;
  // In the engine's order.
  std::vector<FaultDevice*> devices_;
  int arrivals_at_start_ = 0;
};

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

// Which of two devices fails.
class DeviceFaultTest : public EngineDevicesTest, public ::testing::WithParamInterface<int> {
 protected:
  FaultDevice& faulty() { return *devices_[GetParam()]; }
  size_t sound() { return 1 - GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Devices, DeviceFaultTest, ::testing::Values(0, 1),
                         [](const auto& info) { return "device" + std::to_string(info.param); });

TEST_P(DeviceFaultTest, ADeviceThatFailsForGoodTakesOnlyItsOwnRequestsWithIt) {
  StartOn(2, WithLoadCost(OneInstance(), absl::Milliseconds(1)));
  std::vector<std::pair<std::string, bool>> heard;
  engine_->set_readiness_listener(
      [&](std::string_view program, bool ready) { heard.emplace_back(program, ready); });
  const int before = arrivals();
  gate_->Close();
  std::vector<std::unique_ptr<Call>> running;
  running.push_back(Run(1, 1));
  running.push_back(Run(2, 2));
  ASSERT_TRUE(AwaitArrivals(before + 2));
  auto waiting = Run(3, 3);
  faulty().Fail(absl::InternalError("the GPU has fallen off the bus"));
  gate_->Open();
  int failed = 0;
  for (const auto& call : running) {
    if (call->result().ok()) {
      EXPECT_TRUE(call->is_correct());
    } else {
      EXPECT_THAT(call->result(), StatusIs(absl::StatusCode::kUnavailable));
      ++failed;
    }
  }
  // Its end may have been told just before the failure was.
  EXPECT_LE(failed, 1);
  EXPECT_TRUE(waiting->result().ok() || absl::IsUnavailable(waiting->result()));
  // Whoever finds the device failed ends with it; then nobody goes there any more.
  ASSERT_TRUE(Eventually([&] {
    Run(1, 5)->result().IgnoreError();
    return !engine_->workers()[GetParam()]->is_healthy() || loads(sound()) >= 2;
  }));
  faulty().Fail(absl::InternalError("again"));
  ASSERT_TRUE(Eventually([&] {
    bool all = true;
    for (int tenant = 1; tenant <= 3; ++tenant) all &= Run(tenant, 9)->is_correct();
    return all;
  }));
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(Run(1 + i % 3, i)->is_correct());
  EXPECT_TRUE(engine_->workers()[sound()]->is_healthy());
  EXPECT_TRUE(served().is_ready());
  EXPECT_TRUE(heard.empty()) << "it has never ceased to be ready";
  engine_->set_readiness_listener(nullptr);
}

TEST_P(DeviceFaultTest, AProgramIsLoadedOnTheDevicesThatAreLeft) {
  StartOn(2, OneInstance());
  faulty().Fail(absl::InternalError("gone"));
  if (GetParam() == 0) {
    // Pinned memory is the first device's, and there is no more of it.
    EXPECT_FALSE(engine_->AddProgram(std::make_shared<TestProgram>("other")).ok());
    return;
  }
  ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("other")));
  EXPECT_OK(engine_->LoadProgram("other"));
  EXPECT_TRUE((*engine_->FindProgram("other"))->is_ready());
}

TEST_P(DeviceFaultTest, AFailureTakesEveryWorkerOfTheDeviceOutBeforeAnotherRequestGoesThere) {
  EngineOptions options = OneInstance();
  options.workers = 2;
  StartOn(2, options);
  const int before = arrivals();
  gate_->Close();
  AwaitTakers();
  auto first = Run(1, 1);
  ASSERT_TRUE(AwaitArrivals(before + 1));
  AwaitTakers();
  auto second = Run(2, 2);
  ASSERT_TRUE(AwaitArrivals(before + 2));
  ASSERT_EQ(leased(0), 1u);
  ASSERT_EQ(leased(1), 1u);
  faulty().Fail(absl::InternalError("gone"));
  const auto count_healthy = [&](size_t device) {
    return std::ranges::count_if(engine_->workers(), [&](const auto& worker) {
      return worker->device_index() == device && worker->is_healthy();
    });
  };
  EXPECT_TRUE(Eventually([&] { return count_healthy(GetParam()) == 0; }))
      << "the worker without a request is in yet";
  EXPECT_EQ(count_healthy(sound()), 2);
  gate_->Open();
  first->result().IgnoreError();
  second->result().IgnoreError();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Run(1 + i % 3, i)->is_correct());
}

TEST_P(DeviceFaultTest, ADeviceThatFailsWhileAProgramIsLoadedIsLeftOut) {
  StartOn(2, OneInstance());
  ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("other")));
  faulty().InterruptCalls(FaultPoint::kBeginCapture,
                          [this] { faulty().Fail(absl::InternalError("gone")); });
  EXPECT_OK(engine_->LoadProgram("other"));
  EXPECT_TRUE((*engine_->FindProgram("other"))->is_ready());
  EXPECT_TRUE(Eventually([&] { return !engine_->workers()[GetParam()]->is_healthy(); }));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Run(1 + i % 3, i)->is_correct());
}

TEST_P(DeviceFaultTest, AFaultyCallTakesOneDevicesWorkerOutAndItIsRebuilt) {
  StartOn(2, OneInstance());
  faulty().FailNth(FaultPoint::kGraphLaunch, 1, absl::InternalError("injected"));
  const int before = arrivals();
  gate_->Close();
  auto first = Run(1, 1);
  auto second = Run(2, 2);
  ASSERT_TRUE(Eventually([&] { return first->has_ended() || second->has_ended(); }));
  Call& failed = first->has_ended() ? *first : *second;
  Call& running = first->has_ended() ? *second : *first;
  EXPECT_THAT(failed.result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(served().is_ready());
  EXPECT_FALSE(running.has_ended());
  EXPECT_TRUE(Eventually([&] { return leased(sound()) == 1; }));
  gate_->Open();
  EXPECT_TRUE(running.is_correct());
  ASSERT_TRUE(Eventually([&] { return AllWorkersServe(); }));
  EXPECT_EQ(engine_->workers()[GetParam()]->fault_count(), 1u);
  EXPECT_EQ(engine_->workers()[sound()]->fault_count(), 0u);
  gate_->Close();
  const int rebuilt = std::max(before, arrivals());
  first = Run(1, 3);
  second = Run(2, 4);
  EXPECT_TRUE(AwaitArrivals(rebuilt + 2)) << "both serve";
  gate_->Open();
  EXPECT_TRUE(first->is_correct());
  EXPECT_TRUE(second->is_correct());
}

TEST_F(EngineDevicesTest, NothingIsReadyOnceEveryDeviceHasFailed) {
  StartOn(2, OneInstance());
  for (FaultDevice* device : devices_) device->Fail(absl::InternalError("gone"));
  EXPECT_TRUE(Eventually([&] {
    EXPECT_THAT(Run(1, 1)->result(), StatusIs(absl::StatusCode::kUnavailable));
    return !served().is_ready();
  }));
}

// A call of the second device that fails while a program is loaded, the n-th of its kind.
struct LoadFault {
  FaultPoint point;
  int n;
};
const LoadFault kLoadFaults[] = {{FaultPoint::kCreateStream, 1}, {FaultPoint::kCreateStream, 2},
                                 {FaultPoint::kCreateEvent, 1},  {FaultPoint::kAllocate, 1},
                                 {FaultPoint::kAllocate, 5},     {FaultPoint::kAllocatePinned, 1},
                                 {FaultPoint::kCopy, 1},         {FaultPoint::kBeginCapture, 1},
                                 {FaultPoint::kBeginCapture, 2}, {FaultPoint::kEndCapture, 2},
                                 {FaultPoint::kGraphLaunch, 1},  {FaultPoint::kGraphLaunch, 2}};

TEST_P(DeviceCountTest, ALoadThatFailsOnTheLastDeviceLeavesMemoryOfAllAtItsFigure) {
  StartOn(GetParam(), SmallEngine());
  ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("other")));
  // Every instance has its input from a request from now on.
  gate_->Close();
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 2 * GetParam(); ++i) calls.push_back(Run(1, i));
  ASSERT_TRUE(Eventually([&] {
    for (int device = 0; device < GetParam(); ++device) {
      if (leased(device) != 2) return false;
    }
    return true;
  }));
  gate_->Open();
  for (const auto& call : calls) EXPECT_TRUE(call->is_correct());
  RenewKeys(1);
  const std::vector<MemoryFigures> before = MemoryOfAll();
  for (const LoadFault& fault : kLoadFaults) {
    SCOPED_TRACE(std::string(ToString(fault.point)) + " " + std::to_string(fault.n));
    devices_.back()->FailNth(fault.point, fault.n, absl::InternalError("injected"));
    EXPECT_THAT(engine_->LoadProgram("other"),
                StatusIs(absl::StatusCode::kInternal, ::testing::HasSubstr("injected")));
    EXPECT_FALSE((*engine_->FindProgram("other"))->is_ready());
    EXPECT_EQ(MemoryOfAll(), before);
    devices_.back()->ClearFaults();
    EXPECT_TRUE(Run(1, 1)->is_correct());
    RenewKeys(1);
  }
  EXPECT_OK(engine_->LoadProgram("other"));
  EXPECT_OK(engine_->UnloadProgram("other", 1, absl::Seconds(10)));
  std::vector<MemoryFigures> after = MemoryOfAll();
  // Its requests' trees, which were there before it was loaded, are gone with it.
  EXPECT_LT(after.front().pinned_allocated_bytes, before.front().pinned_allocated_bytes);
  after.front().pinned_allocated_bytes = before.front().pinned_allocated_bytes;
  EXPECT_EQ(after, before);
}

TEST_F(EngineDevicesTest, AReplacementThatFailsOnOneDeviceHappensOnNone) {
  StartOn(2, OneInstance());
  const auto next = std::make_shared<TestProgram>("sum", gate_, /*version=*/2);
  devices_[1]->FailNth(FaultPoint::kEndCapture, 1, absl::InternalError("injected"));
  EXPECT_THAT(engine_->ReplaceProgram(next, SmallEngine().DefaultServing(), absl::Seconds(10)),
              StatusIs(absl::StatusCode::kInternal));
  gate_->Close();
  int before = gate_->arrivals();
  auto first = Run(1, 1);
  auto second = Run(2, 2);
  ASSERT_TRUE(Eventually([&] { return gate_->arrivals() == before + 2; }));
  EXPECT_EQ(served().info().version, 1);
  gate_->Open();
  EXPECT_TRUE(first->is_correct());
  EXPECT_TRUE(second->is_correct());

  ASSERT_OK(engine_->ReplaceProgram(next, OneInstance().DefaultServing(), absl::Seconds(10)));
  gate_->Close();
  before = gate_->arrivals();
  first = Run(1, 3);
  second = Run(2, 4);
  ASSERT_TRUE(Eventually([&] { return gate_->arrivals() == before + 2; }));
  EXPECT_EQ(served().info().version, 2);
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
