// An engine on several devices, of which one fails: while it serves, and while a program is loaded.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/engine/engine_devices_fixture.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::FaultDevice;
using ::cipherd::testing::FaultPoint;
using ::cipherd::testing::MemoryFigures;
using ::cipherd::testing::MemoryFiguresOf;
using ::cipherd::testing::StatusIs;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

// Which of two devices fails.
class DeviceFaultTest : public EngineDevicesTest, public ::testing::WithParamInterface<int> {
 protected:
  FaultDevice& faulty() { return *devices_[GetParam()]; }
  size_t sound() { return 1 - GetParam(); }
  bool AllWorkersServe() {
    return std::ranges::all_of(engine_->workers(),
                               [](const auto& worker) { return worker->is_healthy(); });
  }
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

// On so many devices.
class DeviceLoadTest : public EngineDevicesTest, public ::testing::WithParamInterface<int> {
 protected:
  std::vector<MemoryFigures> MemoryOfAll() {
    std::vector<MemoryFigures> figures;
    for (cipherd::testing::FaultDevice* device : devices_)
      figures.push_back(MemoryFiguresOf(*device).value());
    return figures;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, DeviceLoadTest, ::testing::Values(2, 3),
                         [](const auto& info) { return "on" + std::to_string(info.param); });

TEST_P(DeviceLoadTest, ALoadThatFailsOnTheLastDeviceLeavesMemoryOfAllAtItsFigure) {
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

}  // namespace
}  // namespace cipherd::engine
