// A device that fails while requests are on it: the worker goes, its requests end, it comes back.
#include <cctype>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/testing/fault_device.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::FaultDevice;
using ::cipherd::testing::FaultPoint;
using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

std::string NameOf(FaultPoint point) {
  std::string name(cipherd::testing::ToString(point));
  std::erase_if(name, [](char c) { return !std::isalnum(c); });
  return name;
}

class EngineFaultTest : public EngineTest {
 protected:
  void StartFaulty(EngineOptions options = SmallEngine()) {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> inner, OpenTestDevice("cpu"));
    auto device = std::make_unique<FaultDevice>(std::move(inner));
    device_ = device.get();
    Start(std::move(device), options);
    engine_->set_readiness_listener([this](std::string_view, bool ready) { is_ready_ = ready; });
  }
  void Fail(FaultPoint point, int nth = 1) {
    device_->FailNth(point, nth, absl::InternalError("injected"));
  }
  Worker& worker(int index = 0) { return *engine_->workers()[index]; }
  void AwaitReady() {
    while (!worker().is_healthy() || !is_ready_) std::this_thread::yield();
  }

  FaultDevice* device_ = nullptr;
  std::atomic<bool> is_ready_ = true;
};

class FaultAtStageTest
    : public EngineFaultTest,
      public ::testing::WithParamInterface<std::tuple<CompletionMode, FaultPoint, int>> {};

TEST_P(FaultAtStageTest, ItsRequestsEndWithUnavailableAndTheWorkerIsRebuilt) {
  const auto [mode, point, nth] = GetParam();
  EngineOptions options = SmallEngine();
  options.completion = mode;
  StartFaulty(options);
  WarmBothInstances();
  const cipherd::testing::MemoryFigures before = Memory();
  Fail(point, nth);
  int unavailable_count = 0;
  while (worker().fault_count() == 0) {
    std::vector<std::unique_ptr<Call>> calls;
    for (int i = 0; i < 4; ++i) calls.push_back(Run(1, i));
    for (auto& call : calls) {
      // Those that it had begun fail; one that is queued may be served by what comes after.
      if (call->result().ok()) {
        EXPECT_TRUE(call->is_correct());
        continue;
      }
      ++unavailable_count;
      EXPECT_THAT(call->result(), StatusIs(absl::StatusCode::kUnavailable));
      EXPECT_EQ(ReasonOf(call->result()), FailureReason::kUnavailable);
    }
  }
  EXPECT_GT(unavailable_count, 0);
  AwaitReady();
  EXPECT_EQ(worker().fault_count(), 1u);
  WarmBothInstances();
  EXPECT_EQ(served().trees().leased_count(), 0u);
  EXPECT_EQ(Memory(), before);
}

INSTANTIATE_TEST_SUITE_P(
    Points, FaultAtStageTest,
    ::testing::Combine(::testing::Values(CompletionMode::kNotified, CompletionMode::kPolled),
                       ::testing::Values(FaultPoint::kCopy, FaultPoint::kGraphLaunch,
                                         FaultPoint::kWait, FaultPoint::kRecord,
                                         FaultPoint::kCreateEvent),
                       ::testing::Range(1, 7)),
    [](const auto& info) {
      const bool is_polled = std::get<0>(info.param) == CompletionMode::kPolled;
      return absl::StrCat(is_polled ? "Polled" : "Notified", "_", NameOf(std::get<1>(info.param)),
                          "_", std::get<2>(info.param));
    });

TEST_F(EngineFaultTest, AWordOfCompletionThatCannotBeGivenIsAFault) {
  StartFaulty();
  Fail(FaultPoint::kLaunchHost);
  EXPECT_THAT(Run(1, 1)->result(), StatusIs(absl::StatusCode::kUnavailable));
  AwaitReady();
  EXPECT_TRUE(Run(1, 2)->is_correct());
}

TEST_F(EngineFaultTest, AFaultWhileKeysAreLoadedLeavesThemToBeLoadedAgain) {
  StartFaulty();
  for (const FaultPoint point : {FaultPoint::kAllocate, FaultPoint::kCopy}) {
    const uint64_t faults = worker().fault_count();
    Fail(point);
    EXPECT_THAT(Run(2, 1)->result(), StatusIs(absl::StatusCode::kUnavailable));
    while (worker().fault_count() == faults) std::this_thread::yield();
    AwaitReady();
  }
  EXPECT_TRUE(Run(2, 1)->is_correct());
}

class FaultInRebuildTest : public EngineFaultTest,
                           public ::testing::WithParamInterface<FaultPoint> {};

TEST_P(FaultInRebuildTest, AFailedRebuildIsTriedAgain) {
  StartFaulty();
  Fail(FaultPoint::kGraphLaunch);
  {
    auto call = Run(1, 1);
    // While the worker is away nothing else passes this point, or only what fails alike.
    Fail(GetParam(), GetParam() == FaultPoint::kGraphLaunch ? 2 : 1);
    EXPECT_THAT(call->result(), StatusIs(absl::StatusCode::kUnavailable));
  }
  while (worker().fault_count() == 0) std::this_thread::yield();
  AwaitReady();
  EXPECT_TRUE(Run(1, 2)->is_correct());
  EXPECT_EQ(served().trees().leased_count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Points, FaultInRebuildTest,
                         ::testing::Values(FaultPoint::kCreateStream, FaultPoint::kAllocate,
                                           FaultPoint::kAllocatePinned, FaultPoint::kBeginCapture,
                                           FaultPoint::kEndCapture, FaultPoint::kSubmit,
                                           FaultPoint::kGraphLaunch),
                         [](const auto& info) { return NameOf(info.param); });

TEST_F(EngineFaultTest, OthersServeWhileAWorkerIsRebuilt) {
  EngineOptions options = SmallEngine();
  options.workers = 2;
  options.instances = 1;
  StartFaulty(options);
  gate_->Close();
  const int arrivals = gate_->arrivals();
  auto running = Run(1, 1);
  gate_->AwaitArrivals(arrivals + 1);
  Fail(FaultPoint::kGraphLaunch);
  auto failed = Run(1, 2);
  EXPECT_THAT(failed->result(), StatusIs(absl::StatusCode::kUnavailable));
  // Its rebuild is held at the gate; the program is ready by the other one.
  gate_->AwaitArrivals(arrivals + 2);
  EXPECT_TRUE(served().is_ready());
  auto queued = Run(1, 3);
  EXPECT_FALSE(running->has_ended());
  gate_->Open();
  EXPECT_TRUE(running->is_correct());
  EXPECT_TRUE(queued->is_correct());
  while (!worker(0).is_healthy() || !worker(1).is_healthy()) std::this_thread::yield();
  EXPECT_EQ(worker(0).fault_count() + worker(1).fault_count(), 1u);
  EXPECT_TRUE(is_ready_);
}

TEST_F(EngineFaultTest, WithNobodyLeftToServeWhatIsQueuedEnds) {
  StartFaulty();
  gate_->Close();
  const int arrivals = gate_->arrivals();
  auto running = Run(1, 1);
  gate_->AwaitArrivals(arrivals + 1);
  Fail(FaultPoint::kGraphLaunch);
  auto failed = Run(1, 2);
  while (worker().fault_count() == 0) std::this_thread::yield();
  auto queued = Run(1, 3);
  EXPECT_FALSE(queued->has_ended());
  Fail(FaultPoint::kBeginCapture);
  gate_->Open();
  // Whether it completed before the fault was looked at is a race.
  if (running->result().ok()) {
    EXPECT_TRUE(running->is_correct());
  } else {
    EXPECT_THAT(running->result(), StatusIs(absl::StatusCode::kUnavailable));
  }
  EXPECT_THAT(failed->result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(queued->result(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("fails to serve")));
  AwaitReady();
  EXPECT_TRUE(Run(1, 4)->is_correct());
}

TEST_F(EngineFaultTest, AnEngineStopsWhileAWorkerIsAway) {
  EngineOptions options = SmallEngine();
  options.rebuild_pause = absl::InfiniteDuration();
  StartFaulty(options);
  Fail(FaultPoint::kGraphLaunch);
  {
    auto call = Run(1, 1);
    Fail(FaultPoint::kBeginCapture);
    EXPECT_THAT(call->result(), StatusIs(absl::StatusCode::kUnavailable));
  }
  EXPECT_OK(engine_->Stop());
}

class UnloadInRebuildTest : public EngineFaultTest, public ::testing::WithParamInterface<bool> {};

TEST_P(UnloadInRebuildTest, AProgramThatIsUnloadedMeanwhileIsNotRebuilt) {
  const bool is_under_construction = GetParam();
  StartFaulty();
  auto other_gate = std::make_shared<Gate>();
  ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("other", other_gate)));
  ASSERT_OK(engine_->LoadProgram("other"));
  // Admitted while both programs are ready.
  std::map<std::string, RequestPtr> requests;
  for (const std::string name : {"sum", "other"}) {
    RequestHead head = Head(1);
    head.program = name;
    requests[name] = engine_->Open(head);
    ASSERT_OK(engine_->Admit(*requests[name]));
    FillInputs(requests[name]->inputs(), 2);
  }
  const int arrivals = gate_->arrivals(), other_arrivals = other_gate->arrivals();
  gate_->Close();
  other_gate->Close();
  Fail(FaultPoint::kGraphLaunch);
  EXPECT_THAT(Run(1, 1)->result(), StatusIs(absl::StatusCode::kUnavailable));
  // One of them is under construction, at its gate; the other one has yet to be built.
  while (gate_->arrivals() == arrivals && other_gate->arrivals() == other_arrivals) {
    std::this_thread::yield();
  }
  const bool sum_is_first = gate_->arrivals() > arrivals;
  const bool unloads_sum = sum_is_first == is_under_construction;
  const RequestPtr gone = requests[unloads_sum ? "sum" : "other"];
  const RequestPtr queued = requests[unloads_sum ? "other" : "sum"];
  gone->Finish(RequestState::kReceiving, absl::CancelledError());
  absl::Notification told;
  absl::Status result;
  engine_->Submit(queued, [&](const absl::Status& status) {
    result = status;
    told.Notify();
  });
  EXPECT_OK(engine_->UnloadProgram(gone->head().program, 1, absl::Seconds(60)));
  gate_->Open();
  other_gate->Open();
  told.WaitForNotification();
  // A rebuild that failed would have ended it: then nobody serves.
  ASSERT_OK(result);
  EXPECT_TRUE(OutputsMatch(queued->outputs(), 2, 1));
  queued->Finish(RequestState::kReplying, absl::OkStatus());
  EXPECT_EQ(engine_->programs().size(), 1u);
  EXPECT_EQ(worker().fault_count(), 1u);
  // What was built for the one that went is not kept.
  EXPECT_OK(engine_->UnloadProgram(queued->head().program, 1, absl::Seconds(60)));
  EXPECT_EQ(Memory().device_allocated_bytes,
            static_cast<size_t>(engine_->key_residency().stats().used_bytes));
}

INSTANTIATE_TEST_SUITE_P(Unloaded, UnloadInRebuildTest, ::testing::Bool(), [](const auto& info) {
  return info.param ? "UnderConstruction" : "BeforeItsTurn";
});

}  // namespace
}  // namespace cipherd::engine
