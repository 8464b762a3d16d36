#include "client/work_pool.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "gtest/gtest.h"

namespace cipherd::client {
namespace {

TEST(WorkPoolTest, WorkIsTakenInOrder) {
  std::vector<int> taken;
  {
    WorkPool pool(1);
    for (int i = 0; i < 100; ++i) pool.Schedule([&taken, i] { taken.push_back(i); });
  }
  ASSERT_EQ(taken.size(), 100u) << "the pool ends after all that was scheduled";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(taken[i], i);
}

TEST(WorkPoolTest, SoManyWorkAtOnce) {
  WorkPool pool(3);
  std::atomic<int> here = 0;
  absl::BlockingCounter done(3);
  for (int i = 0; i < 3; ++i) {
    pool.Schedule([&] {
      ++here;
      // Ends where the three run at once only.
      while (here < 3) std::this_thread::yield();
      done.DecrementCount();
    });
  }
  done.Wait();
}

TEST(WorkPoolTest, ManyThreadsScheduleAndWorkSchedulesMore) {
  constexpr int kThreads = 4;
  constexpr int kEach = 250;
  std::atomic<int> count = 0;
  absl::BlockingCounter done(2 * kThreads * kEach);
  WorkPool pool(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        pool.Schedule([&] {
          ++count;
          pool.Schedule([&] {
            ++count;
            done.DecrementCount();
          });
          done.DecrementCount();
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done.Wait();
  EXPECT_EQ(count, 2 * kThreads * kEach);
}

}  // namespace
}  // namespace cipherd::client
