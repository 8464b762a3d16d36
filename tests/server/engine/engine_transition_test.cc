// A request that is held at each of its transitions while something happens to it: it ends as the
// table of request_state.h says, once, with every lease given back.
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>

#include "gtest/gtest.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/server/engine/stepped_device.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::FaultPoint;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

// What the request waits for.
enum class HeldAt { kReceiving, kQueued, kTransfer, kCompute, kOutput, kReplying };
constexpr const char* kHeldNames[] = {"Receiving", "Queued", "Transfer",
                                      "Compute",   "Output", "Replying"};

enum class Event { kDelayOnly, kCancel, kDeadline, kDrain, kDropKeys, kUnload };
constexpr const char* kEventNames[] = {"DelayOnly", "Cancel",   "Deadline",
                                       "Drain",     "DropKeys", "Unload"};

class TransitionTest : public EngineTest,
                       public ::testing::WithParamInterface<std::tuple<HeldAt, Event>> {
 protected:
  void SetUp() override {
    std::unique_ptr<SteppedDevice> device = SteppedDevice::Open();
    device_ = device.get();
    EngineOptions options = SmallEngine();
    options.instances = 1;
    Start(std::move(device), options, fake_clock_);
    program_served_ = *engine_->FindProgram("sum");
  }
  void TearDown() override {
    if (unloader_.joinable()) unloader_.join();
    EngineTest::TearDown();
  }

  int submitted_count() { return device_->faults().call_count(FaultPoint::kLaunchHost); }
  // Submits, and waits until the device thread has enqueued it all.
  void SubmitToStreams(const RequestPtr& request, Request::Continuation continuation) {
    const int before = submitted_count();
    engine_->Submit(request, std::move(continuation));
    while (submitted_count() == before) std::this_thread::yield();
  }
  void RunIdle(const std::string& stage) {
    device_->puppet().RunUntilIdle(device_->stream("worker 0 " + stage));
  }

  void Open() {
    RequestHead head = Head(2);
    head.deadline = fake_clock_->Now() + absl::Seconds(10);
    request_ = engine_->Open(head);
    ASSERT_OK(engine_->Admit(*request_));
    FillInputs(request_->inputs(), 42);
  }
  Request::Continuation Continuation() {
    return [this](const absl::Status& status) {
      ++told_count_;
      result_ = status;
      told_ = true;
    };
  }

  void BringTo(HeldAt held_at) {
    if (held_at == HeldAt::kQueued) {
      blocker_ = engine_->Open(Head(1));
      ASSERT_OK(engine_->Admit(*blocker_));
      FillInputs(blocker_->inputs(), 1);
      SubmitToStreams(blocker_, [this](const absl::Status&) { blocker_told_ = true; });
    }
    Open();
    if (held_at == HeldAt::kReceiving) return;
    if (held_at == HeldAt::kQueued) {
      engine_->Submit(request_, Continuation());
      return;
    }
    SubmitToStreams(request_, Continuation());
    if (held_at >= HeldAt::kCompute) RunIdle("transfer");
    if (held_at >= HeldAt::kOutput) RunIdle("compute");
    if (held_at >= HeldAt::kReplying) {
      RunIdle("output");
      while (!told_) std::this_thread::yield();
    }
  }

  void Happen(Event event) {
    switch (event) {
      case Event::kDelayOnly:
        fake_clock_->Advance(absl::Seconds(9));
        break;
      case Event::kCancel:
        engine_->Cancel(request_);
        break;
      case Event::kDeadline:
        fake_clock_->Advance(absl::Seconds(11));
        break;
      case Event::kDrain:
        EXPECT_FALSE(engine_->Drain(absl::ZeroDuration()));
        break;
      case Event::kDropKeys:
        ASSERT_OK(DropTestKeys(engine_->keys(), TenantName(2), TestKeySetId(2)));
        break;
      case Event::kUnload:
        unloader_ = std::thread(
            [this] { EXPECT_OK(engine_->UnloadProgram("sum", 1, absl::InfiniteDuration())); });
        while (program_served_->is_ready()) std::this_thread::yield();
        break;
    }
  }

  // Everything runs from here on, and the RPC does its part.
  void Release() {
    if (request_->state() == RequestState::kReceiving) engine_->Submit(request_, Continuation());
    while (!told_) {
      device_->puppet().RunAll();
      if (blocker_told_.exchange(false)) {
        blocker_->Finish(RequestState::kReplying, absl::OkStatus());
      }
    }
    if (blocker_ != nullptr && !IsTerminal(blocker_->state())) {
      while (!blocker_told_) device_->puppet().RunAll();
      blocker_->Finish(RequestState::kReplying, absl::OkStatus());
    }
    if (!result_.ok()) return;
    EXPECT_TRUE(OutputsMatch(request_->outputs(), 42, 2));
    request_->Finish(RequestState::kReplying, request_->CheckAlive());
  }

  PinnedPool& served_pool() { return program_served_->trees(); }

  SteppedDevice* device_ = nullptr;
  const std::shared_ptr<base::FakeClock> fake_clock_ = std::make_shared<base::FakeClock>();
  RequestPtr request_, blocker_;
  std::shared_ptr<ServedProgram> program_served_;
  std::thread unloader_;
  absl::Status result_;
  std::atomic<int> told_count_ = 0;
  std::atomic<bool> told_ = false, blocker_told_ = false;
};

RequestState ExpectedEnd(HeldAt held_at, Event event) {
  switch (event) {
    case Event::kCancel:
      return RequestState::kCancelled;
    case Event::kDeadline:
      return RequestState::kFailed;
    case Event::kDrain:
      // What has begun completes.
      return held_at <= HeldAt::kQueued ? RequestState::kRejected : RequestState::kSucceeded;
    default:
      return RequestState::kSucceeded;
  }
}

TEST_P(TransitionTest, EndsOnceAsTheTableSaysAndGivesEverythingBack) {
  const auto [held_at, event] = GetParam();
  BringTo(held_at);
  ASSERT_FALSE(IsTerminal(request_->state()));
  Happen(event);
  const bool ends_at_once = held_at == HeldAt::kQueued && event == Event::kCancel;
  if (ends_at_once) {
    EXPECT_EQ(request_->state(), RequestState::kCancelled);
  }
  // What the device may still use stays leased.
  if (held_at >= HeldAt::kTransfer) {
    EXPECT_GE(served_pool().leased_count(), 1u);
  }
  Release();
  EXPECT_EQ(request_->state(), ExpectedEnd(held_at, event));
  EXPECT_EQ(told_count_, 1);
  if (unloader_.joinable()) unloader_.join();
  EXPECT_EQ(served_pool().leased_count(), 0u);
  EXPECT_TRUE(counts().Balances());
  EXPECT_EQ(counts().in_flight, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Table, TransitionTest,
    ::testing::Combine(::testing::Values(HeldAt::kReceiving, HeldAt::kQueued, HeldAt::kTransfer,
                                         HeldAt::kCompute, HeldAt::kOutput, HeldAt::kReplying),
                       ::testing::Values(Event::kDelayOnly, Event::kCancel, Event::kDeadline,
                                         Event::kDrain, Event::kDropKeys, Event::kUnload)),
    [](const auto& info) {
      return std::string(kHeldNames[static_cast<int>(std::get<0>(info.param))]) + "_" +
             kEventNames[static_cast<int>(std::get<1>(info.param))];
    });

}  // namespace
}  // namespace cipherd::engine
