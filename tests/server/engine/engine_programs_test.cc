// Programs that come, change and go while others serve.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/testing/fault_device.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::FaultDevice;
using ::cipherd::testing::FaultPoint;
using ::cipherd::testing::MemoryFigures;
using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

// The machine's clock, which does something at one reading of the thread that asked for it.
class InterruptingClock final : public base::Clock {
 public:
  absl::Time Now() const override {
    if (std::this_thread::get_id() == thread_ && --readings_ == 0) happen_();
    return base::Clock::Real().Now();
  }
  // `happen` runs at the `nth` reading from now on by the calling thread.
  void InterruptReading(int nth, std::function<void()> happen) {
    happen_ = std::move(happen);
    readings_ = nth;
    thread_ = std::this_thread::get_id();
  }

 private:
  std::function<void()> happen_;
  mutable int readings_ = 0;
  std::atomic<std::thread::id> thread_ = std::thread::id();
};

class EngineProgramsTest : public EngineTest {
 protected:
  void StartFaulty() {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> inner, OpenTestDevice("cpu"));
    auto device = std::make_unique<FaultDevice>(std::move(inner));
    device_ = device.get();
    Start(std::move(device), SmallEngine());
  }
  std::shared_ptr<TestProgram> Version(int64_t version) {
    return std::make_shared<TestProgram>("sum", gate_, version);
  }
  absl::Status Replace(std::shared_ptr<const Program> program) {
    return engine_->ReplaceProgram(std::move(program), SmallEngine().DefaultServing(),
                                   absl::Seconds(60));
  }
  static int64_t VersionOf(Call& call) { return call.request()->program().info().version; }

  FaultDevice* device_ = nullptr;
};

TEST_F(EngineProgramsTest, VersionsServeSideBySideAndTheNewestIsTheDefault) {
  StartOnCpu();
  ASSERT_OK(engine_->AddProgram(Version(3)));
  EXPECT_THAT(engine_->AddProgram(Version(3)), StatusIs(absl::StatusCode::kInvalidArgument));
  {
    auto call = Run(1, 5);
    EXPECT_TRUE(call->is_correct()) << "not loaded yet";
    EXPECT_EQ(VersionOf(*call), 1);
  }
  ASSERT_OK(engine_->LoadProgram("sum", 3));
  {
    auto call = Run(1, 5);
    EXPECT_TRUE(call->is_correct());
    EXPECT_EQ(VersionOf(*call), 3);
  }
  RequestHead old = Head(1);
  old.version = 1;
  Call call(*engine_, old, 6, 1);
  EXPECT_TRUE(call.is_correct());
  EXPECT_EQ(VersionOf(call), 1);
  old.version = 2;
  Call unknown(*engine_, old, 6, 1);
  EXPECT_THAT(unknown.result(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("version 2")));
}

TEST_F(EngineProgramsTest, AProgramIsLoadedWhileAnotherHoldsTheServingStreams) {
  StartOnCpu();
  gate_->Close();
  const int arrivals = gate_->arrivals();
  auto held = Run(1, 1);
  gate_->AwaitArrivals(arrivals + 1);
  // Would block for ever on a stream of the worker.
  ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("other")));
  ASSERT_OK(engine_->LoadProgram("other"));
  EXPECT_FALSE(held->has_ended());
  gate_->Open();
  EXPECT_TRUE(held->is_correct());
}

TEST_F(EngineProgramsTest, ReplacingAVersionDropsNoRequest) {
  EngineOptions options = SmallEngine();
  options.queue_capacity = 64;
  StartOnCpu(options);
  std::atomic<bool> is_over = false;
  std::atomic<int> wrong = 0, failed = 0, served = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; !is_over; ++i) {
        auto call = Run(1 + (client + i) % 3, 1000 * client + i);
        if (!call->result().ok()) ++failed;
        if (!call->is_correct()) ++wrong;
        ++served;
      }
    });
  }
  for (int64_t version : {2, 3, 3, 2, 7}) {
    const int before = served;
    ASSERT_OK(
        engine_->ReplaceProgram(Version(version), options.DefaultServing(), absl::Seconds(60)));
    while (served < before + 8) std::this_thread::yield();
    auto call = Run(1, 1);
    EXPECT_EQ(VersionOf(*call), version);
    EXPECT_EQ(engine_->programs().size(), 1u);
  }
  is_over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0);
}

TEST_F(EngineProgramsTest, OnlyTheVersionsNamedAreReplaced) {
  StartOnCpu();
  const std::shared_ptr<TestProgram> second = Version(2);
  ASSERT_OK(engine_->AddProgram(second));
  ASSERT_OK(engine_->LoadProgram("sum", 2));
  const auto replace = [&](const std::shared_ptr<TestProgram>& program,
                           std::vector<std::shared_ptr<const Program>> replaced) {
    return engine_->ReplaceVersions(program, SmallEngine().DefaultServing(), replaced,
                                    absl::Seconds(60));
  };
  const auto versions = [&] {
    std::vector<int64_t> versions;
    for (const auto& served : engine_->programs()) versions.push_back(served->info().version);
    return versions;
  };
  ASSERT_OK(replace(Version(5), {}));
  EXPECT_THAT(versions(), ElementsAre(1, 2, 5));
  const std::shared_ptr<TestProgram> again = Version(2);
  ASSERT_OK(replace(again, {second}));
  EXPECT_THAT(versions(), ElementsAre(1, 5, 2));
  EXPECT_TRUE(engine_->IsReady(*again));
  EXPECT_FALSE(engine_->IsReady(*second));
  ASSERT_OK(replace(Version(3), {second, again})) << "the former is gone already";
  EXPECT_THAT(versions(), ElementsAre(1, 5, 3));
  auto broken = Version(6);
  broken->MakeUnsteady();
  EXPECT_THAT(replace(broken, {again}), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(versions(), ElementsAre(1, 5, 3));
  EXPECT_THAT(engine_->UnloadProgram(*second, absl::Seconds(60)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("version 2")));
  auto call = Run(1, 5);
  EXPECT_TRUE(call->is_correct());
  EXPECT_EQ(VersionOf(*call), 5);
}

TEST_F(EngineProgramsTest, WhatHasBegunCompletesOnTheOldVersion) {
  StartOnCpu();
  gate_->Close();
  const int arrivals = gate_->arrivals();
  auto running = Run(1, 1);
  gate_->AwaitArrivals(arrivals + 1);
  auto replacement = std::make_shared<TestProgram>("sum", nullptr, 2);
  std::thread replacer([&] { EXPECT_OK(Replace(replacement)); });
  while (served().info().version != 2) std::this_thread::yield();
  auto next = Run(1, 2);
  EXPECT_FALSE(running->has_ended());
  gate_->Open();
  replacer.join();
  EXPECT_TRUE(next->is_correct());
  EXPECT_EQ(VersionOf(*next), 2);
  EXPECT_TRUE(running->is_correct());
  EXPECT_EQ(VersionOf(*running), 1);
}

TEST_F(EngineProgramsTest, AnAdmissionWhoseVersionGoesMeanwhileLandsOnItsSuccessor) {
  const auto clock = std::make_shared<InterruptingClock>();
  StartOnCpu(SmallEngine(), clock);
  const RequestPtr request = engine_->Open(Head(1));
  bool is_replaced = false;
  // It looks at its deadline, finds the version, and then at the clock for its tenant's quota.
  clock->InterruptReading(2, [&] {
    EXPECT_EQ(served().info().version, 1);
    EXPECT_OK(Replace(Version(2)));
    is_replaced = true;
  });
  const absl::Status admitted = engine_->Admit(*request);
  EXPECT_TRUE(is_replaced);
  EXPECT_OK(admitted);
  if (admitted.ok()) {
    EXPECT_EQ(request->program().info().version, 2);
  }
  request->Finish(RequestState::kReceiving, absl::CancelledError());
}

TEST_F(EngineProgramsTest, AFailedReplacementLeavesTheOldVersionServing) {
  StartOnCpu();
  std::vector<std::pair<std::string, bool>> readiness;
  engine_->set_readiness_listener(
      [&](std::string_view program, bool ready) { readiness.emplace_back(program, ready); });
  auto broken = Version(2);
  broken->MakeUnsteady();
  EXPECT_THAT(Replace(broken), StatusIs(absl::StatusCode::kInternal));
  auto call = Run(1, 5);
  EXPECT_TRUE(call->is_correct());
  EXPECT_EQ(VersionOf(*call), 1);
  EXPECT_EQ(engine_->programs().size(), 1u);
  EXPECT_TRUE(readiness.empty());
}

TEST_F(EngineProgramsTest, UnloadingWaitsForRequestsAndGivesEverythingBack) {
  StartOnCpu();
  WarmBothInstances();
  const MemoryFigures before = Memory();
  auto gate = std::make_shared<Gate>();
  ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("other", gate)));
  ASSERT_OK(engine_->LoadProgram("other"));
  EXPECT_GT(Memory().device_allocated_bytes, before.device_allocated_bytes);
  gate->Close();
  const int arrivals = gate->arrivals();
  RequestHead head = Head(1);
  head.program = "other";
  {
    Call running(*engine_, head, 1, 1);
    gate->AwaitArrivals(arrivals + 1);
    EXPECT_THAT(engine_->UnloadProgram("other", 0, absl::Milliseconds(1)),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
    Call late(*engine_, head, 1, 1);
    EXPECT_THAT(late.result(), StatusIs(absl::StatusCode::kUnavailable));
    gate->Open();
    EXPECT_OK(engine_->UnloadProgram("other", 0, absl::Seconds(60)));
    EXPECT_TRUE(IsTerminal(running.request()->state()));
    EXPECT_TRUE(running.is_correct());
    // The request is still there, and with it the record of its program.
    EXPECT_EQ(Memory().device_allocated_bytes, before.device_allocated_bytes);
  }
  Call unknown(*engine_, head, 1, 1);
  EXPECT_THAT(unknown.result(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(Memory(), before);
}

TEST_F(EngineProgramsTest, AHundredFailedLoadsLeaveMemoryAsItWas) {
  StartFaulty();
  ServingSettings batched = SmallEngine().DefaultServing();
  batched.batch_sizes = {1, 2};
  const auto calls_of = [&](FaultPoint point) { return device_->call_count(point); };
  constexpr FaultPoint kPoints[] = {
      FaultPoint::kCreateStream, FaultPoint::kCreateEvent,   FaultPoint::kAllocate,
      FaultPoint::kCopy,         FaultPoint::kSubmit,        FaultPoint::kRecord,
      FaultPoint::kWait,         FaultPoint::kBeginCapture,  FaultPoint::kEndCapture,
      FaultPoint::kGraphLaunch,  FaultPoint::kAllocatePinned};
  // How often a load that succeeds passes each point.
  std::vector<int> passes;
  for (FaultPoint point : kPoints) passes.push_back(calls_of(point));
  ASSERT_OK(engine_->ReplaceProgram(Version(2), batched, absl::Seconds(60)));
  for (size_t i = 0; i < passes.size(); ++i) passes[i] = calls_of(kPoints[i]) - passes[i];
  WarmBothInstances();
  const MemoryFigures before = Memory();
  int failed = 0;
  for (int attempt = 0; failed < 100; ++attempt) {
    const size_t point = attempt % passes.size();
    ASSERT_GT(passes[point], 0) << cipherd::testing::ToString(kPoints[point]);
    // The first, the last, and those between.
    const int nth = 1 + (attempt / static_cast<int>(passes.size()) * 7) % passes[point];
    device_->FailNth(kPoints[point], nth, absl::InternalError("injected"));
    const absl::Status replaced = engine_->ReplaceProgram(Version(3), batched, absl::Seconds(60));
    device_->ClearFaults();
    EXPECT_FALSE(replaced.ok()) << cipherd::testing::ToString(kPoints[point]) << " " << nth;
    if (replaced.ok()) break;
    ++failed;
    EXPECT_EQ(Memory(), before) << replaced.ToString();
    EXPECT_TRUE(Run(1, attempt)->is_correct());
    device_->TrimMemory();
  }
  EXPECT_EQ(failed, 100);
}

TEST_F(EngineProgramsTest, ProgramsLoadInParallel) {
  StartOnCpu();
  std::vector<std::thread> loaders;
  for (int i = 0; i < 4; ++i) {
    const std::string name = "p" + std::to_string(i);
    ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>(name)));
    loaders.emplace_back([this, name] { EXPECT_OK(engine_->LoadProgram(name)); });
  }
  for (std::thread& loader : loaders) loader.join();
  for (int i = 0; i < 4; ++i) {
    RequestHead head = Head(1);
    head.program = "p" + std::to_string(i);
    Call call(*engine_, head, i, 1);
    EXPECT_TRUE(call.is_correct());
  }
}

TEST_F(EngineProgramsTest, WhoeverIsToldThatAProgramIsReadyFindsWhatItsLoaderHasPublished) {
  StartOnCpu();
  std::vector<std::string> events;
  engine_->set_readiness_listener([&](std::string_view program, bool ready) {
    if (program == "added") events.push_back(ready ? "ready" : "not ready");
  });
  ASSERT_OK(engine_->ReplaceProgram(std::make_shared<TestProgram>("added"),
                                    SmallEngine().DefaultServing(), absl::Seconds(60), [&] {
                                      EXPECT_TRUE((*engine_->FindProgram("added"))->is_ready());
                                      events.push_back("published");
                                    }));
  EXPECT_THAT(events, ElementsAre("published", "ready"));
}

TEST_F(EngineProgramsTest, ReadinessIsToldByNameAndOnlyWhenItChanges) {
  StartOnCpu();
  std::vector<std::pair<std::string, bool>> readiness;
  engine_->set_readiness_listener(
      [&](std::string_view program, bool ready) { readiness.emplace_back(program, ready); });
  ASSERT_OK(engine_->AddProgram(Version(2)));
  ASSERT_OK(engine_->LoadProgram("sum", 2));
  ASSERT_OK(engine_->UnloadProgram("sum", 1, absl::Seconds(60)));
  EXPECT_TRUE(readiness.empty());
  ASSERT_OK(engine_->UnloadProgram("sum", 2, absl::Seconds(60)));
  EXPECT_THAT(readiness, ElementsAre(Pair("sum", false)));
  ASSERT_OK(engine_->AddProgram(Version(3)));
  ASSERT_OK(engine_->LoadProgram("sum"));
  EXPECT_THAT(readiness, ElementsAre(Pair("sum", false), Pair("sum", true)));
}

TEST_F(EngineProgramsTest, SettingsBoundTheTimeOfARequest) {
  const auto clock = std::make_shared<base::FakeClock>();
  StartOnCpu(SmallEngine(), clock);
  ServingSettings settings = SmallEngine().DefaultServing();
  settings.default_timeout = absl::Seconds(5);
  settings.longest_timeout = absl::Seconds(10);
  ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("bounded"), settings));
  ASSERT_OK(engine_->LoadProgram("bounded"));
  const auto deadline_of = [&](absl::Time asked, int64_t version = 0) {
    RequestHead head = Head(1);
    head.version = version;
    head.program = "bounded";
    head.deadline = asked;
    const RequestPtr request = engine_->Open(head);
    request->Finish(RequestState::kReceiving, absl::CancelledError());
    return request->head().deadline - clock->Now();
  };
  EXPECT_EQ(deadline_of(absl::InfiniteFuture()), absl::Seconds(5));
  EXPECT_EQ(deadline_of(clock->Now() + absl::Seconds(7)), absl::Seconds(7));
  EXPECT_EQ(deadline_of(clock->Now() + absl::Seconds(70)), absl::Seconds(10));

  settings.default_timeout = absl::Seconds(6);
  ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("bounded", nullptr, 2), settings));
  ASSERT_OK(engine_->LoadProgram("bounded", 2));
  EXPECT_EQ(deadline_of(absl::InfiniteFuture()), absl::Seconds(6));
  EXPECT_EQ(deadline_of(absl::InfiniteFuture(), 1), absl::Seconds(5));
}

TEST(ServingSettingsTest, EachFieldIsChecked) {
  EXPECT_OK(ServingSettings{}.Validate());
  const auto refused = [](auto change, const std::string& field) {
    ServingSettings settings;
    change(settings);
    EXPECT_THAT(settings.Validate(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("serving." + field)));
  };
  refused([](auto& s) { s.instances = 0; }, "instances");
  refused([](auto& s) { s.batch_sizes = {}; }, "batch_sizes");
  refused([](auto& s) { s.batch_sizes = {2, 4}; }, "batch_sizes");
  refused([](auto& s) { s.batch_sizes = {1, 4, 4}; }, "batch_sizes");
  refused([](auto& s) { s.batch_sizes = {1, 65}; }, "batch_sizes");
  refused([](auto& s) { s.max_batch_delay = absl::Seconds(-1); }, "max_batch_delay");
  refused([](auto& s) { s.queue_capacity = 0; }, "queue_capacity");
  refused([](auto& s) { s.default_timeout = absl::ZeroDuration(); }, "default_timeout");
  refused([](auto& s) { s.longest_timeout = absl::ZeroDuration(); }, "longest_timeout");
  refused([](auto& s) { s.warmup = -1; }, "warmup");
}

}  // namespace
}  // namespace cipherd::engine
