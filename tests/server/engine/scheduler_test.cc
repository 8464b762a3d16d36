#include "server/engine/scheduler.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
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
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

constexpr int kCapacity = 3;

// Claims what `accepts` accepts, in batches of one.
class OneByOne final : public Scheduler::Claimant {
 public:
  using Accepts = std::function<bool(const RequestPtr&)>;
  explicit OneByOne(Accepts accepts = [](const RequestPtr&) { return true; })
      : accepts_(std::move(accepts)) {}

  int BatchSize(const ServedProgram&, int count) override { return std::min(count, 1); }
  bool Claim(const RequestPtr& request) override { return accepts_(request); }
  void Unclaim(int) override {}
  void PrepareToTake() override { prepare_(); }

  void set_prepare(std::function<void()> prepare) { prepare_ = std::move(prepare); }

 private:
  const Accepts accepts_;
  std::function<void()> prepare_ = [] {};
};

class SchedulerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, OpenTestDevice("cpu"));
    a_ = AddProgram("a");
    b_ = AddProgram("b");
  }

  std::shared_ptr<ServedProgram> AddProgram(const std::string& name,
                                            const ServingSettings& settings = {}) {
    auto program = std::make_shared<TestProgram>(name);
    auto trees = PinnedPool::Create(*program, 64, *device_).value();
    auto served = std::make_shared<ServedProgram>(program, std::move(trees), settings);
    scheduler_.AddProgram(*served, kCapacity);
    return served;
  }

  // A request that records how it ended.
  struct Tracked {
    RequestPtr request;
    std::shared_ptr<std::vector<absl::Status>> results;
  };
  Tracked Make(const std::shared_ptr<ServedProgram>& program,
               absl::Time deadline = absl::InfiniteFuture(), const std::string& tenant = "t") {
    auto request = std::make_shared<Request>(
        RequestHead{.program = program->info().name, .tenant = tenant, .deadline = deadline},
        program->info().name, ledger_, clock_);
    request->Grant(program, nullptr, *program->trees().TryLease());
    auto results = std::make_shared<std::vector<absl::Status>>();
    request->set_continuation(
        [results](const absl::Status& status) { results->push_back(status); });
    return {request, results};
  }

  RequestPtr TakeAny() {
    OneByOne any;
    return scheduler_.Take(quit_, any).front();
  }
  void EndQuietly(const RequestPtr& request) {
    request->Finish(request->state(), absl::CancelledError());
  }

  std::unique_ptr<runtime::Device> device_;
  base::FakeClock clock_;
  RequestLedger ledger_;
  Scheduler scheduler_{clock_};
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

// Batches of 1, 2 or 4; claims what `accepts` accepts.
class InBatches final : public Scheduler::Claimant {
 public:
  using Accepts = std::function<bool(const RequestPtr&)>;
  explicit InBatches(Accepts accepts = [](const RequestPtr&) { return true; })
      : accepts_(std::move(accepts)) {}

  int BatchSize(const ServedProgram&, int count) override {
    ++looks;
    return !is_idle ? 0 : count >= 4 ? 4 : std::min(count, 2);
  }
  bool Claim(const RequestPtr& request) override {
    if (!accepts_(request)) return false;
    ++claimed_count;
    return true;
  }
  void Unclaim(int count) override { claimed_count -= count; }
  bool RunsHere(const RequestPtr& request, size_t) override {
    return request->head().tenant != left_tenant;
  }

  std::optional<std::string> left_tenant;
  std::atomic<int> looks = 0;
  bool is_idle = true;
  int claimed_count = 0;

 private:
  const Accepts accepts_;
};

class BatchTest : public SchedulerTest {
 protected:
  void SetUp() override {
    SchedulerTest::SetUp();
    ServingSettings settings;
    settings.batch_sizes = {1, 2, 4};
    settings.max_batch_delay = absl::Milliseconds(5);
    batched_ = AddProgram("batched", settings);
    scheduler_.RemoveProgram(*batched_);
    scheduler_.AddProgram(*batched_, 64);
  }

  std::vector<Tracked> Enqueue(std::vector<std::string> tenants) {
    std::vector<Tracked> tracked;
    for (const std::string& tenant : tenants) {
      tracked.push_back(Make(batched_, absl::InfiniteFuture(), tenant));
      EXPECT_OK(scheduler_.Enqueue(tracked.back().request));
    }
    return tracked;
  }
  // Tenants of what can be taken without waiting; nothing where a batch is held.
  std::vector<std::string> Take(InBatches& claimant) {
    std::atomic<bool> quit = false;
    std::vector<RequestPtr> batch;
    const int looks = claimant.looks;
    std::thread taker([&] { batch = scheduler_.Take(quit, claimant); });
    // It has looked once, and gives up before the second time.
    while (claimant.looks == looks) std::this_thread::yield();
    quit = true;
    scheduler_.Wake();
    taker.join();
    return TenantsOf(batch);
  }
  std::vector<std::string> TenantsOf(const std::vector<RequestPtr>& batch) {
    std::vector<std::string> tenants;
    for (const RequestPtr& request : batch) {
      tenants.push_back(request->head().tenant);
      EXPECT_EQ(request->state(), RequestState::kExecuting);
      EndQuietly(request);
    }
    return tenants;
  }
  std::vector<std::string> TakeNow(InBatches& claimant) {
    return TenantsOf(scheduler_.Take(quit_, claimant));
  }
  void TearDown() override { scheduler_.Close(absl::UnavailableError("end")); }

  std::shared_ptr<ServedProgram> batched_;
};

TEST_F(BatchTest, AFullBatchStartsAtOnceAndWhatIsLeftIsHeld) {
  const auto tracked = Enqueue({"t", "t", "t", "t", "t"});
  InBatches claimant;
  EXPECT_THAT(TakeNow(claimant), SizeIs(4));
  EXPECT_THAT(Take(claimant), IsEmpty());
  EXPECT_EQ(tracked[4].request->state(), RequestState::kQueued);
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_THAT(TakeNow(claimant), SizeIs(1));
  EXPECT_DOUBLE_EQ(tracked[4].request->times().batch_wait_seconds, 5e-3);
  EXPECT_DOUBLE_EQ(tracked[4].request->times().queue_seconds, 0);
}

TEST_F(BatchTest, AfterItsDelayTheLargestBatchThatIsFilledStarts) {
  const auto tracked = Enqueue({"t", "t", "t"});
  InBatches claimant;
  EXPECT_THAT(Take(claimant), IsEmpty());
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_THAT(TakeNow(claimant), SizeIs(2));
  EXPECT_THAT(TakeNow(claimant), SizeIs(1));
}

TEST_F(BatchTest, AHeldBatchIsTakenWhenItsDelayEndsWithoutAnyOtherEvent) {
  // On the real clock, since it is the wait that is tested.
  Scheduler scheduler(base::Clock::Real());
  scheduler.AddProgram(*batched_, 8);
  auto request = std::make_shared<Request>(RequestHead{.program = "batched"}, "batched", ledger_,
                                           base::Clock::Real());
  request->Grant(batched_, nullptr, *batched_->trees().TryLease());
  ASSERT_OK(scheduler.Enqueue(request));
  InBatches claimant;
  EXPECT_THAT(scheduler.Take(quit_, claimant), ElementsAre(request));
  EndQuietly(request);
}

TEST_F(BatchTest, WaitingForAnInstanceIsNotWaitingForABatch) {
  const auto tracked = Enqueue({"t"});
  InBatches claimant;
  claimant.is_idle = false;
  EXPECT_THAT(Take(claimant), IsEmpty());
  clock_.Advance(absl::Seconds(1));
  claimant.is_idle = true;
  EXPECT_THAT(TakeNow(claimant), SizeIs(1));
  EXPECT_DOUBLE_EQ(tracked[0].request->times().batch_wait_seconds, 0);
  EXPECT_DOUBLE_EQ(tracked[0].request->times().queue_seconds, 1);
}

TEST_F(BatchTest, TenantsShareABatchInTurn) {
  const auto tracked = Enqueue({"a", "a", "a", "a", "a", "b", "c", "c"});
  InBatches claimant;
  EXPECT_THAT(TakeNow(claimant), ElementsAre("a", "b", "c", "a"));
  EXPECT_THAT(TakeNow(claimant), ElementsAre("c", "a", "a", "a"));
}

TEST_F(BatchTest, WhatCannotBeClaimedShrinksTheBatchAndKeepsItsPlace) {
  const auto tracked = Enqueue({"a", "b", "b", "b"});
  bool has_room = false;
  InBatches claimant([&](const RequestPtr& r) { return has_room || r->head().tenant != "a"; });
  // Three could be claimed; the third goes back, its claim too.
  EXPECT_THAT(TakeNow(claimant), ElementsAre("b", "b"));
  EXPECT_EQ(claimant.claimed_count, 2);
  EXPECT_EQ(scheduler_.queued_count(*batched_), 2u);
  clock_.Advance(absl::Milliseconds(5));
  has_room = true;
  EXPECT_THAT(TakeNow(claimant), UnorderedElementsAre("a", "b"));
}

TEST_F(BatchTest, WhatIsLeftToAnotherDeviceNeitherFillsABatchNorEndsItsDelay) {
  InBatches claimant;
  claimant.left_tenant = "other";
  const auto left = Enqueue({"other", "other", "other"});
  clock_.Advance(absl::Seconds(1));
  const auto tracked = Enqueue({"a", "b", "c"});
  EXPECT_THAT(Take(claimant), IsEmpty()) << "held: six wait, but three of them here";
  EXPECT_EQ(claimant.claimed_count, 0);
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_THAT(TakeNow(claimant), ElementsAre("a", "b"));
  EXPECT_EQ(claimant.claimed_count, 2) << "no more is claimed than the batch takes";
  const auto filled = Enqueue({"a", "b", "d"});
  EXPECT_THAT(TakeNow(claimant), UnorderedElementsAre("c", "a", "b", "d"));
  claimant.left_tenant.reset();
  EXPECT_THAT(TakeNow(claimant), ElementsAre("other", "other"));
}

TEST_F(BatchTest, EndingTheQueueLeavesItOpen) {
  const auto tracked = Enqueue({"t", "t"});
  scheduler_.EndQueued(absl::UnavailableError("no device"));
  for (const Tracked& t : tracked) {
    ASSERT_EQ(t.results->size(), 1u);
    EXPECT_THAT(t.results->front(), StatusIs(absl::StatusCode::kUnavailable));
  }
  const auto later = Enqueue({"t"});
  EXPECT_EQ(scheduler_.queued_count(*batched_), 1u);
}

}  // namespace
}  // namespace cipherd::engine
