#include "server/engine/request_ledger.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace cipherd::engine {
namespace {

TEST(RequestLedgerTest, CountsBothSidesOfTheEquation) {
  RequestLedger ledger;
  for (int i = 0; i < 5; ++i) ledger.Enter("p");
  ledger.Close("p", RequestState::kSucceeded, absl::StatusCode::kOk);
  ledger.Close("p", RequestState::kRejected, absl::StatusCode::kInvalidArgument);
  ledger.Close("p", RequestState::kRejected, absl::StatusCode::kResourceExhausted);

  const RequestLedger::Counts counts = ledger.Snapshot().at("p");
  EXPECT_EQ(counts.accepted, 5u);
  EXPECT_EQ(counts.in_flight, 2u);
  EXPECT_EQ(counts.FinishedIn(RequestState::kSucceeded), 1u);
  EXPECT_EQ(counts.FinishedIn(RequestState::kRejected), 2u);
  EXPECT_TRUE(counts.Balances());
  EXPECT_EQ(ledger.in_flight(), 2u);
}

TEST(RequestLedgerTest, AnEntryThatIsNeverClosedShows) {
  RequestLedger::Counts counts;
  counts.accepted = 2;
  counts.in_flight = 1;
  EXPECT_FALSE(counts.Balances());
}

TEST(RequestLedgerTest, EverySnapshotBalancesWhileOthersCount) {
  RequestLedger ledger;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&ledger] {
      for (int i = 0; i < 500; ++i) {
        ledger.Enter("p");
        ledger.Close("p", RequestState::kSucceeded, absl::StatusCode::kOk);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    for (const auto& [program, counts] : ledger.Snapshot()) EXPECT_TRUE(counts.Balances());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ledger.Snapshot().at("p").FinishedIn(RequestState::kSucceeded), 2000u);
}

TEST(RequestLedgerTest, AwaitIdleWaitsForTheLastRequest) {
  RequestLedger ledger;
  EXPECT_TRUE(ledger.AwaitIdle(absl::ZeroDuration()));
  ledger.Enter("p");
  EXPECT_FALSE(ledger.AwaitIdle(absl::Milliseconds(1)));
  std::thread closer(
      [&ledger] { ledger.Close("p", RequestState::kCancelled, absl::StatusCode::kCancelled); });
  EXPECT_TRUE(ledger.AwaitIdle(absl::InfiniteDuration()));
  closer.join();
}

}  // namespace
}  // namespace cipherd::engine
