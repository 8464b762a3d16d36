#include "server/engine/request.h"

#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

class RequestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, OpenTestDevice("cpu"));
    auto program = std::make_shared<TestProgram>();
    auto trees = PinnedPool::Create(*program, 1, *device_).value();
    served_ = std::make_shared<ServedProgram>(program, std::move(trees));
  }

  std::shared_ptr<Request> Make(absl::Time deadline = absl::InfiniteFuture()) {
    auto request = std::make_shared<Request>(RequestHead{.program = "sum", .deadline = deadline},
                                             "sum", ledger_, clock_);
    request->Grant(served_, nullptr, *served_->trees().TryLease());
    return request;
  }
  RequestLedger::Counts counts() { return ledger_.Snapshot().at("sum"); }

  std::unique_ptr<runtime::Device> device_;
  base::FakeClock clock_;
  RequestLedger ledger_;
  std::shared_ptr<ServedProgram> served_;
};

TEST_F(RequestTest, ASuccessPassesEveryStateAndGivesItsLeaseBackAtTheEnd) {
  const auto request = Make();
  int continued = 0;
  request->set_continuation([&](const absl::Status& status) {
    EXPECT_OK(status);
    ++continued;
  });
  EXPECT_TRUE(request->Advance(RequestState::kReceiving, RequestState::kQueued));
  EXPECT_TRUE(request->Advance(RequestState::kQueued, RequestState::kExecuting));
  EXPECT_TRUE(request->Advance(RequestState::kExecuting, RequestState::kReplying));
  request->ContinueWithResult();
  EXPECT_EQ(served_->trees().leased_count(), 1u);
  EXPECT_TRUE(request->Finish(RequestState::kReplying, absl::OkStatus()));
  EXPECT_EQ(continued, 1);
  EXPECT_EQ(served_->trees().leased_count(), 0u);
  EXPECT_EQ(counts().FinishedIn(RequestState::kSucceeded), 1u);
  EXPECT_TRUE(counts().Balances());
}

TEST_F(RequestTest, EveryEndGivesTheQuotaBackWhoeverKeepsTheRequest) {
  TenantQuotas quotas({.max_requests = 1}, clock_);
  const std::vector<RequestState> path = {RequestState::kReceiving, RequestState::kQueued,
                                          RequestState::kExecuting, RequestState::kReplying};
  for (size_t end = 0; end < path.size(); ++end) {
    for (const absl::Status& status :
         {absl::OkStatus(), absl::CancelledError(), absl::DeadlineExceededError(""),
          absl::InternalError(""), absl::UnavailableError("")}) {
      // Only a reply that was sent is a success.
      if (status.ok() && path[end] != RequestState::kReplying) continue;
      const auto request =
          std::make_shared<Request>(RequestHead{.program = "sum"}, "sum", ledger_, clock_);
      ASSERT_OK_AND_ASSIGN(TenantQuotas::Admission admission, quotas.Admit("alice", 8));
      request->Grant(served_, nullptr, *served_->trees().TryLease(), std::move(admission));
      for (size_t i = 0; i < end; ++i) ASSERT_TRUE(request->Advance(path[i], path[i + 1]));
      EXPECT_FALSE(quotas.Admit("alice", 8).ok());
      ASSERT_TRUE(request->Finish(path[end], status));
      EXPECT_EQ(quotas.tenant_count(), 0u) << ToString(path[end]) << ' ' << status.ToString();
    }
  }
}

TEST_F(RequestTest, OnlyOneOfManyEndsARequest) {
  for (int round = 0; round < 50; ++round) {
    const auto request = Make();
    std::atomic<int> continued = 0;
    request->set_continuation([&](const absl::Status&) { ++continued; });
    ASSERT_TRUE(request->Advance(RequestState::kReceiving, RequestState::kQueued));
    std::atomic<int> winners = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        if (request->Finish(RequestState::kQueued, absl::CancelledError())) ++winners;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(continued, 1);
    EXPECT_EQ(served_->trees().leased_count(), 0u);
  }
  EXPECT_EQ(counts().FinishedIn(RequestState::kCancelled), 50u);
}

TEST_F(RequestTest, AStaleOwnerCannotMoveIt) {
  const auto request = Make();
  ASSERT_TRUE(request->Advance(RequestState::kReceiving, RequestState::kQueued));
  EXPECT_FALSE(request->Advance(RequestState::kReceiving, RequestState::kQueued));
  EXPECT_FALSE(request->Finish(RequestState::kReceiving, absl::CancelledError()));
  EXPECT_EQ(request->state(), RequestState::kQueued);
  EXPECT_TRUE(request->Finish(RequestState::kQueued, absl::CancelledError()));
}

TEST_F(RequestTest, AnIllegalTransitionEndsTheProcess) {
  const auto request = Make();
  EXPECT_DEATH(request->Advance(RequestState::kReceiving, RequestState::kReplying),
               "no transition from receiving to replying");
  request->Finish(RequestState::kReceiving, absl::CancelledError());
}

TEST_F(RequestTest, ARequestThatIsDroppedIsCountedAsAFault) {
  Make().reset();
  EXPECT_EQ(counts().in_flight, 0u);
  EXPECT_EQ((counts().finished.at({RequestState::kFailed, absl::StatusCode::kInternal})), 1u);
  EXPECT_EQ(served_->trees().leased_count(), 0u);
}

TEST_F(RequestTest, LivenessNamesTheStateThatItEndedIn) {
  const auto request = Make(clock_.Now() + absl::Seconds(5));
  EXPECT_OK(request->CheckAlive());
  request->RequestCancel();
  EXPECT_THAT(request->CheckAlive(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("receiving")));
  clock_.Advance(absl::Seconds(5));
  EXPECT_THAT(request->CheckAlive(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  request->Finish(RequestState::kReceiving, request->CheckAlive());
  EXPECT_EQ(request->state(), RequestState::kFailed);
}

}  // namespace
}  // namespace cipherd::engine
