#include "server/engine/scheduler.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

constexpr int kCapacity = 3;

class SchedulerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, OpenTestDevice("cpu"));
    a_ = AddProgram("a");
    b_ = AddProgram("b");
  }

  std::shared_ptr<ServedProgram> AddProgram(const std::string& name) {
    auto program = std::make_shared<TestProgram>(name);
    auto trees = PinnedPool::Create(*program, 8, *device_).value();
    auto served = std::make_shared<ServedProgram>(program, std::move(trees));
    scheduler_.AddProgram(*served);
    return served;
  }

  // A request that records how it ended.
  struct Tracked {
    RequestPtr request;
    std::shared_ptr<std::vector<absl::Status>> results;
  };
  Tracked Make(const std::shared_ptr<ServedProgram>& program,
               absl::Time deadline = absl::InfiniteFuture()) {
    auto request = std::make_shared<Request>(
        RequestHead{.program = program->info().name, .deadline = deadline}, program->info().name,
        ledger_, clock_);
    request->Grant(program, nullptr, *program->trees().TryLease());
    auto results = std::make_shared<std::vector<absl::Status>>();
    request->set_continuation(
        [results](const absl::Status& status) { results->push_back(status); });
    return {request, results};
  }

  RequestPtr TakeAny() {
    return scheduler_.Take(quit_, [](const RequestPtr&) { return true; });
  }
  void EndQuietly(const RequestPtr& request) {
    request->Finish(request->state(), absl::CancelledError());
  }

  std::unique_ptr<runtime::Device> device_;
  base::FakeClock clock_;
  RequestLedger ledger_;
  Scheduler scheduler_{kCapacity, clock_};
  std::atomic<bool> quit_ = false;
  std::shared_ptr<ServedProgram> a_, b_;
};

TEST_F(SchedulerTest, RequestsOfAProgramRunInTheirOrder) {
  std::vector<Tracked> tracked = {Make(a_), Make(a_), Make(a_)};
  for (Tracked& t : tracked) ASSERT_OK(scheduler_.Enqueue(t.request));
  for (Tracked& t : tracked) {
    EXPECT_EQ(TakeAny(), t.request);
    EXPECT_EQ(t.request->state(), RequestState::kExecuting);
    EndQuietly(t.request);
  }
}

TEST_F(SchedulerTest, ProgramsTakeTurns) {
  std::vector<Tracked> tracked = {Make(a_), Make(a_), Make(b_), Make(b_)};
  for (Tracked& t : tracked) ASSERT_OK(scheduler_.Enqueue(t.request));
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i) {
    const RequestPtr request = TakeAny();
    order.push_back(request->head().program);
    EndQuietly(request);
  }
  EXPECT_THAT(order, ElementsAre("a", "b", "a", "b"));
}

TEST_F(SchedulerTest, AFullQueueRefusesAndOthersStayOpen) {
  std::vector<Tracked> tracked;
  for (int i = 0; i < kCapacity; ++i) {
    tracked.push_back(Make(a_));
    ASSERT_OK(scheduler_.Enqueue(tracked.back().request));
  }
  Tracked refused = Make(a_);
  const absl::Status status = scheduler_.Enqueue(refused.request);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("'a'")));
  EXPECT_EQ(ReasonOf(status), FailureReason::kOverloaded);
  EXPECT_EQ(refused.request->state(), RequestState::kReceiving);
  EndQuietly(refused.request);
  EXPECT_EQ(scheduler_.queued_count(*a_), static_cast<size_t>(kCapacity));

  Tracked other = Make(b_);
  EXPECT_OK(scheduler_.Enqueue(other.request));
  EndQuietly(TakeAny());
  Tracked next = Make(a_);
  EXPECT_OK(scheduler_.Enqueue(next.request)) << "a place has come free";
  scheduler_.Close(absl::UnavailableError("end"));
}

TEST_F(SchedulerTest, ADeadlineThatPassesInTheQueueGivesEveryLeaseBack) {
  Tracked early = Make(a_, clock_.Now() + absl::Seconds(1));
  Tracked late = Make(a_, clock_.Now() + absl::Seconds(3));
  ASSERT_OK(scheduler_.Enqueue(early.request));
  ASSERT_OK(scheduler_.Enqueue(late.request));
  const size_t leased = a_->trees().leased_count();

  clock_.Advance(absl::Seconds(2));
  scheduler_.ExpireOverdue();
  ASSERT_EQ(early.results->size(), 1u);
  EXPECT_THAT(early.results->front(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("queued")));
  EXPECT_EQ(early.request->state(), RequestState::kFailed);
  EXPECT_EQ(a_->trees().leased_count(), leased - 1);
  EXPECT_TRUE(late.results->empty());
  EXPECT_EQ(TakeAny(), late.request);
  EndQuietly(late.request);
}

TEST_F(SchedulerTest, AWaitingWorkerEndsARequestAtItsDeadline) {
  // On the real clock, since it is the wait that is tested.
  Scheduler scheduler(kCapacity, base::Clock::Real());
  scheduler.AddProgram(*a_);
  auto request = std::make_shared<Request>(
      RequestHead{.program = "a", .deadline = absl::Now() + absl::Milliseconds(20)}, "a", ledger_,
      base::Clock::Real());
  request->Grant(a_, nullptr, *a_->trees().TryLease());
  absl::Notification ended;
  request->set_continuation([&](const absl::Status& status) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
    ended.Notify();
  });
  std::thread worker([&] { scheduler.Take(quit_, [](const RequestPtr&) { return false; }); });
  ASSERT_OK(scheduler.Enqueue(request));
  ended.WaitForNotification();
  quit_ = true;
  scheduler.Wake();
  worker.join();
}

TEST_F(SchedulerTest, ARequestThatIsTooLateIsNotLetIn) {
  Tracked late = Make(a_, clock_.Now());
  EXPECT_THAT(scheduler_.Enqueue(late.request), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EndQuietly(late.request);
}

TEST_F(SchedulerTest, CancellingAQueuedRequestEndsItAtOnce) {
  Tracked first = Make(a_), second = Make(a_);
  ASSERT_OK(scheduler_.Enqueue(first.request));
  ASSERT_OK(scheduler_.Enqueue(second.request));
  scheduler_.Cancel(first.request);
  ASSERT_EQ(first.results->size(), 1u);
  EXPECT_THAT(first.results->front(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(first.request->state(), RequestState::kCancelled);
  EXPECT_EQ(scheduler_.queued_count(*a_), 1u);
  EXPECT_EQ(a_->trees().leased_count(), 1u);
  EXPECT_EQ(TakeAny(), second.request);
  EndQuietly(second.request);
}

TEST_F(SchedulerTest, CancellingARunningRequestOnlyMarksIt) {
  Tracked running = Make(a_);
  ASSERT_OK(scheduler_.Enqueue(running.request));
  const RequestPtr taken = TakeAny();
  scheduler_.Cancel(taken);
  EXPECT_EQ(taken->state(), RequestState::kExecuting);
  EXPECT_EQ(a_->trees().leased_count(), 1u) << "the device may still read and write its trees";
  EXPECT_THAT(taken->CheckAlive(), StatusIs(absl::StatusCode::kCancelled));
  EndQuietly(taken);
}

TEST_F(SchedulerTest, WhatCannotStartWaitsAndOthersPassIt) {
  Tracked blocked = Make(a_), other = Make(b_);
  ASSERT_OK(scheduler_.Enqueue(blocked.request));
  ASSERT_OK(scheduler_.Enqueue(other.request));
  const auto only_b = [](const RequestPtr& request) { return request->head().program == "b"; };
  EXPECT_EQ(scheduler_.Take(quit_, only_b), other.request);
  EXPECT_EQ(blocked.request->state(), RequestState::kQueued);
  EndQuietly(other.request);
  scheduler_.Close(absl::UnavailableError("end"));
}

TEST_F(SchedulerTest, AWakeMakesWaitersLookAgain) {
  Tracked waiting = Make(a_);
  ASSERT_OK(scheduler_.Enqueue(waiting.request));
  std::atomic<bool> may_start = false;
  std::atomic<int> looks = 0;
  std::thread worker([&] {
    const RequestPtr taken = scheduler_.Take(quit_, [&](const RequestPtr&) {
      ++looks;
      return may_start.load();
    });
    EXPECT_EQ(taken, waiting.request);
  });
  while (looks == 0) std::this_thread::yield();
  may_start = true;
  scheduler_.Wake();
  worker.join();
  EndQuietly(waiting.request);
}

TEST_F(SchedulerTest, ClosingEndsWhatIsQueuedAndReleasesWorkers) {
  Tracked queued = Make(a_), late = Make(b_);
  ASSERT_OK(scheduler_.Enqueue(queued.request));
  std::thread worker(
      [&] { EXPECT_EQ(scheduler_.Take(quit_, [](const RequestPtr&) { return false; }), nullptr); });
  scheduler_.Close(absl::UnavailableError("closed for the test"));
  worker.join();
  ASSERT_EQ(queued.results->size(), 1u);
  EXPECT_THAT(queued.results->front(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(queued.request->state(), RequestState::kRejected);
  EXPECT_THAT(scheduler_.Enqueue(late.request),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("closed for the test")));
  EndQuietly(late.request);
}

TEST_F(SchedulerTest, TheOldestAgeIsThatOfTheLongestWait) {
  EXPECT_EQ(scheduler_.oldest_age(), absl::ZeroDuration());
  Tracked first = Make(a_);
  ASSERT_OK(scheduler_.Enqueue(first.request));
  clock_.Advance(absl::Seconds(2));
  Tracked second = Make(b_);
  ASSERT_OK(scheduler_.Enqueue(second.request));
  EXPECT_EQ(scheduler_.oldest_age(), absl::Seconds(2));
  scheduler_.Close(absl::UnavailableError("end"));
}

}  // namespace
}  // namespace cipherd::engine
