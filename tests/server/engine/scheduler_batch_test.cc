// Scheduler: requests that run together, and are held for others to join them.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/engine/scheduler_fixture.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

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
  bool BeginLook(const ServedProgram&) override { return left_tenant.has_value(); }
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
  claimant.left_tenant = "nobody";
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
