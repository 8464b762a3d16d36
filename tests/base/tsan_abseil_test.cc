// Under ThreadSanitizer: variables guarded by Abseil's mutexes are no races, unguarded ones still
// are.
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/base/sanitizers.h"
#include "gtest/gtest.h"

namespace {

constexpr int kThreadCount = 4;
constexpr int kRoundCount = 1000;

void RunThreads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreadCount; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(TsanAbseilTest, LockOrdersGuardedAccesses) {
  absl::Mutex mu;
  int count = 0;
  RunThreads([&](int) {
    for (int round = 0; round < kRoundCount; ++round) {
      absl::MutexLock lock(&mu);
      ++count;
    }
  });
  EXPECT_EQ(count, kThreadCount * kRoundCount);
}

TEST(TsanAbseilTest, AwaitOrdersGuardedAccessesAndItsConditions) {
  absl::Mutex mu;
  int turn = 0;
  RunThreads([&](int index) {
    for (int round = 0; round < kRoundCount / 10; ++round) {
      auto is_my_turn = [&] { return turn % kThreadCount == index; };
      absl::MutexLock lock(&mu);
      mu.Await(absl::Condition(&is_my_turn));
      ++turn;
    }
  });
  EXPECT_EQ(turn, kThreadCount * (kRoundCount / 10));
}

TEST(TsanAbseilTest, EveryHolderOfAStatusMayBeItsLast) {
  for (int round = 0; round < kRoundCount / 10; ++round) {
    std::vector<absl::Status> holders(kThreadCount, absl::InternalError("one message for all"));
    RunThreads([&](int index) {
      const absl::Status held = std::move(holders[index]);
      EXPECT_EQ(held.message().size(), 19u);
    });
  }
}

TEST(TsanAbseilTest, CondVarOrdersGuardedAccesses) {
  absl::Mutex mu;
  absl::CondVar changed;
  int turn = 0;
  RunThreads([&](int index) {
    for (int round = 0; round < kRoundCount / 10; ++round) {
      absl::MutexLock lock(&mu);
      while (turn % kThreadCount != index) changed.Wait(&mu);
      ++turn;
      changed.SignalAll();
    }
  });
  EXPECT_EQ(turn, kThreadCount * (kRoundCount / 10));
}

TEST(TsanAbseilTest, NotificationOrdersWhatCameBefore) {
  absl::Notification done;
  int result = 0;
  std::thread worker([&] {
    result = 1;
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(result, 1);
  worker.join();
}

TEST(TsanAbseilTest, SeeingANotificationOrdersWhatCameBefore) {
  absl::Notification done;
  int result = 0;
  std::thread worker([&] {
    result = 1;
    done.Notify();
  });
  while (!done.HasBeenNotified()) std::this_thread::yield();
  EXPECT_EQ(result, 1);
  worker.join();
}

TEST(TsanAbseilTest, BlockingCounterOrdersWhatCameBefore) {
  absl::BlockingCounter pending(kThreadCount);
  int results[kThreadCount] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreadCount; ++i) {
    threads.emplace_back([&, i] {
      results[i] = 1;
      pending.DecrementCount();
    });
  }
  pending.Wait();
  for (int result : results) EXPECT_EQ(result, 1);
  for (std::thread& thread : threads) thread.join();
}

#if CIPHERD_THREAD_SANITIZER
TEST(TsanAbseilDeathTest, UnguardedAccessIsStillARace) {
  EXPECT_DEATH(
      {
        absl::Mutex mu;
        int count = 0;
        RunThreads([&](int) {
          for (int round = 0; round < kRoundCount; ++round) {
            { absl::MutexLock lock(&mu); }
            ++count;
          }
        });
      },
      "data race");
}
#endif

}  // namespace
