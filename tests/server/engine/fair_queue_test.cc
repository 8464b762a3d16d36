#include "server/engine/fair_queue.h"

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/request_ledger.h"

namespace cipherd::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FairQueueTest : public ::testing::Test {
 protected:
  // "a1" is tenant a's.
  RequestPtr Make(const std::string& name) {
    auto request = std::make_shared<Request>(
        RequestHead{.tenant = name.substr(0, 1), .request_id = name}, "p", ledger_, clock_);
    request->set_queued_at(clock_.Now());
    made_.push_back(request);
    return request;
  }
  void Push(const std::vector<std::string>& names) {
    for (const std::string& name : names) queue_.Push(Make(name));
  }
  std::vector<std::string> Pop(int count, const std::string& blocked_tenants = "") {
    popped_ = queue_.Pop(
        count, [](const RequestPtr&, size_t) { return true; },
        [&](const RequestPtr& request) {
          return blocked_tenants.find(request->head().tenant) == std::string::npos;
        });
    std::vector<std::string> names;
    for (const RequestPtr& request : popped_) names.push_back(request->head().request_id);
    return names;
  }
  void TearDown() override {
    for (const RequestPtr& request : made_) {
      if (!IsTerminal(request->state())) request->Finish(request->state(), absl::CancelledError());
    }
  }

  base::FakeClock clock_;
  RequestLedger ledger_;
  std::vector<RequestPtr> made_;
  std::vector<RequestPtr> popped_;
  FairQueue queue_;
};

TEST_F(FairQueueTest, TenantsTakeTurnsAndKeepTheirOrder) {
  Push({"a1", "a2", "a3", "b1", "c1", "c2"});
  EXPECT_THAT(Pop(6), ElementsAre("a1", "b1", "c1", "a2", "c2", "a3"));
  EXPECT_TRUE(queue_.empty());
}

TEST_F(FairQueueTest, ATurnOutlastsAPop) {
  Push({"a1", "a2", "b1", "b2"});
  EXPECT_THAT(Pop(1), ElementsAre("a1"));
  EXPECT_THAT(Pop(1), ElementsAre("b1"));
  EXPECT_THAT(Pop(2), ElementsAre("a2", "b2"));
}

TEST_F(FairQueueTest, ATenantWhoComesBackStandsBehindThoseWhoWait) {
  Push({"a1", "b1", "b2"});
  EXPECT_THAT(Pop(1), ElementsAre("a1"));
  Push({"a2"});
  EXPECT_THAT(Pop(3), ElementsAre("b1", "a2", "b2"));
}

TEST_F(FairQueueTest, WhoCannotBeClaimedIsPassedWithItsOrderKept) {
  Push({"a1", "a2", "b1"});
  EXPECT_THAT(Pop(3, "a"), ElementsAre("b1"));
  EXPECT_THAT(Pop(3), ElementsAre("a1", "a2"));
}

TEST_F(FairQueueTest, NobodyIsPassedForEver) {
  Push({"a1"});
  for (int i = 0; i < FairQueue::kMaxPasses; ++i) {
    Push({"b1"});
    EXPECT_THAT(Pop(1, "a"), ElementsAre("b1"));
  }
  Push({"b2"});
  EXPECT_THAT(Pop(1, "a"), IsEmpty());
  EXPECT_THAT(Pop(2), ElementsAre("a1", "b2"));
}

TEST_F(FairQueueTest, WhoIsLeftToAnotherDeviceHoldsNoLineHoweverManyPass) {
  Push({"a1", "a2"});
  size_t told_waiting = 0;
  const auto pop = [&](bool is_a_here, bool is_a_claimed) {
    const auto runs_here = [&](const RequestPtr& request, size_t waiting) {
      if (request->head().tenant != "a") return true;
      told_waiting = waiting;
      return is_a_here;
    };
    EXPECT_EQ(queue_.ShareOf(runs_here).count, queue_.size() - (is_a_here ? 0 : 2));
    popped_ = queue_.Pop(1, runs_here, [&](const RequestPtr& request) {
      return request->head().tenant != "a" || is_a_claimed;
    });
    return popped_.empty() ? "" : popped_.front()->head().request_id;
  };
  for (int i = 0; i < 2 * FairQueue::kMaxPasses; ++i) {
    Push({"b1"});
    ASSERT_EQ(pop(/*is_a_here=*/false, /*is_a_claimed=*/false), "b1");
    EXPECT_EQ(told_waiting, 2u);
  }
  // What has been left counts as no pass for want of room either.
  Push({"b1"});
  EXPECT_EQ(pop(/*is_a_here=*/true, /*is_a_claimed=*/false), "b1");
  EXPECT_EQ(pop(/*is_a_here=*/true, /*is_a_claimed=*/true), "a1");
}

TEST_F(FairQueueTest, AShareIsOfThoseWhoseNextRequestRunsHere) {
  Push({"a1", "a2"});
  const absl::Time later = clock_.Now() + absl::Seconds(1);
  clock_.Advance(absl::Seconds(1));
  Push({"b1", "a3", "c1", "c2"});
  const FairQueue::Share share = queue_.ShareOf(
      [](const RequestPtr& request, size_t) { return request->head().tenant != "a"; });
  EXPECT_EQ(share.count, 3u);
  EXPECT_EQ(share.oldest, later);
  const FairQueue::Share none = queue_.ShareOf([](const RequestPtr&, size_t) { return false; });
  EXPECT_EQ(none.count, 0u);
  EXPECT_EQ(none.oldest, absl::InfiniteFuture());
}

TEST_F(FairQueueTest, WhatIsDecidedAnewAfterEachRequestEndsATenantsShare) {
  Push({"a1", "a2", "a3"});
  const auto while_three_wait = [](const RequestPtr&, size_t waiting) { return waiting == 3; };
  EXPECT_EQ(queue_.ShareOf(while_three_wait).count, 3u);
  popped_ = queue_.Pop(3, while_three_wait, [](const RequestPtr&) { return true; });
  EXPECT_EQ(popped_.size(), 1u);
}

// Nor does who comes next take over how often another was passed.
TEST_F(FairQueueTest, WhoHasLeftIsPassedAnewWhenItComesAgain) {
  Push({"a1"});
  for (int i = 0; i < FairQueue::kMaxPasses; ++i) {
    Push({"b1"});
    EXPECT_THAT(Pop(1, "a"), ElementsAre("b1"));
  }
  EXPECT_TRUE(queue_.Remove(made_.front()));
  for (const char* name : {"a2", "c1"}) {
    Push({name, "b2"});
    EXPECT_THAT(Pop(1, "ac"), ElementsAre("b2"));
  }
}

TEST_F(FairQueueTest, WhatIsPutBackIsFirstInLineAgain) {
  Push({"a1", "a2", "b1", "c1"});
  EXPECT_THAT(Pop(3), ElementsAre("a1", "b1", "c1"));
  queue_.PutBack({popped_.begin() + 1, popped_.end()});
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_THAT(Pop(3), ElementsAre("b1", "c1", "a2"));
}

TEST_F(FairQueueTest, ARequestCanBeTakenOutOfTheMiddle) {
  Push({"a1", "a2", "a3", "b1"});
  EXPECT_TRUE(queue_.Remove(made_[1]));
  EXPECT_FALSE(queue_.Remove(made_[1]));
  EXPECT_TRUE(queue_.Remove(made_[3]));
  EXPECT_THAT(Pop(4), ElementsAre("a1", "a3"));
}

TEST_F(FairQueueTest, TheDeadLeaveTheOthersInTheirTurn) {
  Push({"a1", "b1", "a2", "b2"});
  std::vector<RequestPtr> dead;
  queue_.RemoveIf([](const RequestPtr& r) { return r->head().request_id[1] == '1'; }, dead);
  EXPECT_EQ(dead.size(), 2u);
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_THAT(Pop(4), ElementsAre("a2", "b2"));
}

TEST_F(FairQueueTest, TheOldestIsFoundBehindOthers) {
  EXPECT_EQ(queue_.oldest(), absl::InfiniteFuture());
  Push({"a1"});
  const absl::Time first = clock_.Now();
  clock_.Advance(absl::Seconds(1));
  Push({"b1", "a2"});
  EXPECT_EQ(queue_.oldest(), first);
  Pop(1);
  EXPECT_EQ(queue_.oldest(), first + absl::Seconds(1));
}

// Whatever comes and goes: with n tenants waiting, a tenant is served at least every n-th time.
TEST_F(FairQueueTest, NoTenantWaitsForMoreThanOneOfEachOther) {
  std::mt19937 random(7);
  std::map<std::string, int> waiting, served_others;
  for (int step = 0; step < 2000; ++step) {
    const std::string tenant(1, static_cast<char>('a' + std::min<int>(random() % 8, 4)));
    if (random() % 2 == 0) {
      Push({tenant + absl::StrCat(step)});
      ++waiting[tenant];
      continue;
    }
    const std::vector<std::string> names = Pop(1);
    if (names.empty()) continue;
    const std::string served = names.front().substr(0, 1);
    --waiting[served];
    served_others[served] = 0;
    for (const auto& [other, count] : waiting) {
      if (other == served || count == 0) {
        served_others[other] = 0;
      } else {
        EXPECT_LE(++served_others[other], 4) << other;
      }
    }
  }
}

}  // namespace
}  // namespace cipherd::engine
