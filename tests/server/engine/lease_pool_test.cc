#include "server/engine/lease_pool.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

std::vector<std::unique_ptr<int>> Items(int count) {
  std::vector<std::unique_ptr<int>> items;
  for (int i = 0; i < count; ++i) items.push_back(std::make_unique<int>(i));
  return items;
}

TEST(LeasePoolTest, LendsEachItemOnce) {
  LeasePool<int> pool("ints", Items(2));
  auto a = pool.TryLease();
  auto b = pool.TryLease();
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_NE(**a, **b);
  EXPECT_FALSE(pool.TryLease().has_value());
  EXPECT_EQ(pool.leased_count(), 2u);
  a.reset();
  EXPECT_TRUE(pool.TryLease().has_value());
}

TEST(LeasePoolTest, TheLastOneBackIsLentNext) {
  LeasePool<int> pool("ints", Items(3));
  auto a = pool.TryLease();
  auto b = pool.TryLease();
  const int warm = **a;
  b.reset();
  a.reset();
  EXPECT_EQ(**pool.TryLease(), warm);
}

TEST(LeasePoolTest, ALeakedLeaseIsAnErrorThatNamesThePool) {
  LeasePool<int> pool("ints of the test", Items(2));
  auto leaked = pool.TryLease();
  EXPECT_THAT(pool.Close(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("ints of the test: 1 of 2 leases")));
  EXPECT_FALSE(pool.TryLease().has_value());
  leaked.reset();
  EXPECT_OK(pool.Close());
}

TEST(LeasePoolTest, AnItemOutlivesItsPoolForWhoHoldsIt) {
  std::optional<LeasePool<int>::Lease> lease;
  {
    LeasePool<int> pool("ints", Items(1));
    lease = pool.TryLease();
  }
  EXPECT_EQ(**lease, 0);
}

TEST(LeasePoolTest, TheReturnIsToldAfterTheItemIsBack) {
  std::atomic<int> lendable = 0;
  std::unique_ptr<LeasePool<int>> pool;
  pool = std::make_unique<LeasePool<int>>("ints", Items(1), [&] {
    if (pool->leased_count() == 0) ++lendable;
  });
  pool->TryLease().reset();
  pool->TryLease()->Return();
  EXPECT_EQ(lendable, 2);
}

TEST(LeasePoolTest, MovingALeaseMovesTheDutyToReturn) {
  LeasePool<int> pool("ints", Items(2));
  LeasePool<int>::Lease a = *pool.TryLease();
  LeasePool<int>::Lease b = *pool.TryLease();
  a = std::move(b);
  EXPECT_EQ(pool.leased_count(), 1u);
  a.Return();
  a.Return();
  EXPECT_EQ(pool.leased_count(), 0u);
}

TEST(LeasePoolTest, ThreadsNeverHoldOneItemTogether) {
  LeasePool<std::atomic<int>> pool("counters", [] {
    std::vector<std::unique_ptr<std::atomic<int>>> items;
    for (int i = 0; i < 3; ++i) items.push_back(std::make_unique<std::atomic<int>>(0));
    return items;
  }());
  std::atomic<bool> shared = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        if (auto lease = pool.TryLease()) {
          if ((*lease)->fetch_add(1) != 0) shared = true;
          (*lease)->fetch_sub(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(shared);
  EXPECT_OK(pool.Close());
}

}  // namespace
}  // namespace cipherd::engine
