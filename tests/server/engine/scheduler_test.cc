#include "server/engine/scheduler.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/server/engine/scheduler_fixture.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

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
  Scheduler scheduler(base::Clock::Real());
  scheduler.AddProgram(*a_, kCapacity);
  auto request = std::make_shared<Request>(
      RequestHead{.program = "a", .deadline = absl::Now() + absl::Milliseconds(20)}, "a", ledger_,
      base::Clock::Real());
  request->Grant(a_, nullptr, *a_->trees().TryLease());
  absl::Notification ended;
  request->set_continuation([&](const absl::Status& status) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
    ended.Notify();
  });
  OneByOne none([](const RequestPtr&) { return false; });
  // Before the thread is made, which on a busy machine may take as long.
  ASSERT_OK(scheduler.Enqueue(request));
  std::thread worker([&] { scheduler.Take(quit_, none); });
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
  OneByOne only_b([](const RequestPtr& request) { return request->head().program == "b"; });
  EXPECT_THAT(scheduler_.Take(quit_, only_b), ElementsAre(other.request));
  EXPECT_EQ(blocked.request->state(), RequestState::kQueued);
  EndQuietly(other.request);
  scheduler_.Close(absl::UnavailableError("end"));
}

TEST_F(SchedulerTest, WhatComesWhileAWorkerPreparesIsTakenWithoutTheSpin) {
  // Who has missed it spins and then sleeps, until this ends it without a request.
  constexpr absl::Duration kSpin = absl::Seconds(10);
  absl::Notification is_taken;
  std::thread impatience([&] {
    if (is_taken.WaitForNotificationWithTimeout(2 * kSpin)) return;
    quit_ = true;
    scheduler_.Wake();
  });
  Tracked tracked = Make(a_);
  OneByOne worker;
  int prepared_count = 0;
  worker.set_prepare([&] {
    if (prepared_count++ > 0) return;
    ASSERT_OK(scheduler_.Enqueue(tracked.request));
  });
  const absl::Time start = absl::Now();
  EXPECT_THAT(scheduler_.Take(quit_, worker, kSpin), ElementsAre(tracked.request));
  EXPECT_LT(absl::Now() - start, kSpin / 2);
  is_taken.Notify();
  impatience.join();
  EXPECT_EQ(prepared_count, 1);
  EndQuietly(tracked.request);
}

// It neither sleeps nor spins to the end: no other change comes.
TEST_F(SchedulerTest, WhoSpinsSeesARequestAtOnce) {
  constexpr absl::Duration kSpin = absl::Seconds(20);
  Tracked tracked = Make(a_);
  OneByOne worker;
  absl::Notification spins;
  worker.set_prepare([&] { spins.Notify(); });
  std::thread client([&] {
    spins.WaitForNotification();
    ASSERT_OK(scheduler_.Enqueue(tracked.request));
  });
  const absl::Time start = absl::Now();
  EXPECT_THAT(scheduler_.Take(quit_, worker, kSpin), ElementsAre(tracked.request));
  EXPECT_LT(absl::Now() - start, kSpin / 2);
  client.join();
  EndQuietly(tracked.request);
}

// What it waits for wakes it; it does not keep a processor busy until then.
TEST_F(SchedulerTest, AWorkerThatCannotStartWhatIsQueuedSleepsSoon) {
  constexpr absl::Duration kSpin = absl::Seconds(20);
  Tracked blocked = Make(a_);
  ASSERT_OK(scheduler_.Enqueue(blocked.request));
  OneByOne worker([](const RequestPtr&) { return false; });
  absl::Notification spins;
  worker.set_prepare([&] {
    if (!spins.HasBeenNotified()) spins.Notify();
  });
  const auto processor_time = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return absl::DurationFromTimespec(time);
  };
  absl::Duration taken;
  std::thread device_thread([&] {
    const absl::Duration start = processor_time();
    EXPECT_THAT(scheduler_.Take(quit_, worker, kSpin), IsEmpty());
    taken = processor_time() - start;
  });
  spins.WaitForNotification();
  // So that a spin would show: nobody else tells it anything meanwhile.
  constexpr absl::Duration kWatched = absl::Milliseconds(200);
  absl::Notification().WaitForNotificationWithTimeout(kWatched);
  quit_ = true;
  scheduler_.Wake();
  device_thread.join();
  EXPECT_LT(taken, kWatched / 4);
  scheduler_.Close(absl::UnavailableError("end"));
}

TEST_F(SchedulerTest, AWakeMakesWaitersLookAgain) {
  Tracked waiting = Make(a_);
  ASSERT_OK(scheduler_.Enqueue(waiting.request));
  std::atomic<bool> may_start = false;
  std::atomic<int> looks = 0;
  OneByOne claimant([&](const RequestPtr&) {
    ++looks;
    return may_start.load();
  });
  std::thread worker(
      [&] { EXPECT_THAT(scheduler_.Take(quit_, claimant), ElementsAre(waiting.request)); });
  while (looks == 0) std::this_thread::yield();
  may_start = true;
  scheduler_.Wake();
  worker.join();
  EndQuietly(waiting.request);
}

TEST_F(SchedulerTest, ClosingEndsWhatIsQueuedAndReleasesWorkers) {
  Tracked queued = Make(a_), late = Make(b_);
  ASSERT_OK(scheduler_.Enqueue(queued.request));
  OneByOne none([](const RequestPtr&) { return false; });
  std::thread worker([&] { EXPECT_THAT(scheduler_.Take(quit_, none), IsEmpty()); });
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

TEST_F(SchedulerTest, ProgramsOfAHigherPriorityGoFirst) {
  ServingSettings urgent;
  urgent.priority = 1;
  const auto c = AddProgram("c", urgent);
  std::vector<Tracked> tracked = {Make(a_), Make(b_), Make(c), Make(c)};
  for (Tracked& t : tracked) ASSERT_OK(scheduler_.Enqueue(t.request));
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i) {
    const RequestPtr request = TakeAny();
    order.push_back(request->head().program);
    EndQuietly(request);
  }
  EXPECT_THAT(order, ElementsAre("c", "c", "a", "b"));
}

// One of two devices, which leaves everything to the other until that one has taken something.
class OneOfTwo final : public Scheduler::Claimant {
 public:
  explicit OneOfTwo(bool takes_first, std::atomic<bool>& has_taken)
      : takes_first_(takes_first), has_taken_(has_taken) {}

  int BatchSize(const ServedProgram& program, int count) override { return 1; }
  bool BeginLook(const ServedProgram&) override { return true; }
  bool RunsHere(const RequestPtr& request, size_t waiting) override {
    ++looked_;
    return takes_first_ || has_taken_.load();
  }
  bool Claim(const RequestPtr& request) override {
    has_taken_.store(true);
    return true;
  }
  void Unclaim(int count) override {}
  bool EndTake() override { return true; }

  // Requests that it has been asked about.
  int looked() const { return looked_.load(); }

 private:
  const bool takes_first_;
  std::atomic<bool>& has_taken_;
  std::atomic<int> looked_ = 0;
};

TEST_F(SchedulerTest, WhoHasLeftARequestToAnotherLooksAgainOnceThatOneHasTakenOne) {
  std::atomic<bool> has_taken = false;
  OneOfTwo first(/*takes_first=*/true, has_taken);
  OneOfTwo second(/*takes_first=*/false, has_taken);
  const Tracked one = Make(a_, absl::InfiniteFuture(), "t");
  const Tracked two = Make(a_, absl::InfiniteFuture(), "u");
  ASSERT_OK(scheduler_.Enqueue(one.request));
  ASSERT_OK(scheduler_.Enqueue(two.request));
  std::vector<RequestPtr> taken;
  absl::Notification ended;
  std::thread waiter([&] {
    taken = scheduler_.Take(quit_, second);
    ended.Notify();
  });
  // It has left both, and sleeps.
  while (second.looked() < 2) std::this_thread::yield();
  EXPECT_THAT(scheduler_.Take(quit_, first), ElementsAre(one.request));
  EXPECT_TRUE(ended.WaitForNotificationWithTimeout(absl::Seconds(10)));
  quit_.store(true);
  scheduler_.Wake();
  waiter.join();
  EXPECT_THAT(taken, ElementsAre(two.request));
  EndQuietly(one.request);
  EndQuietly(two.request);
}

}  // namespace
}  // namespace cipherd::engine
