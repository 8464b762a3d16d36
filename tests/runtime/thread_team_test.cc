#include "core/runtime/host/thread_team.h"

#include <atomic>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace cipherd::runtime::host {
namespace {

TEST(ThreadTeamTest, EveryIndexIsVisitedOnceAndSeenByTheCaller) {
  for (int workers : {1, 2, 4}) {
    ThreadTeam team(workers);
    for (int64_t count : {0, 1, 2, 3, 100}) {
      std::vector<int> visits(count);
      team.ForEach(count, [&](int64_t i) { ++visits[i]; });
      EXPECT_EQ(visits, std::vector<int>(count, 1)) << workers << " workers";
    }
  }
}

TEST(ThreadTeamTest, MembersWorkBesideTheCaller) {
  ThreadTeam team(3);
  // Passes only with three threads inside at once.
  absl::Barrier* barrier = new absl::Barrier(3);
  team.ForEach(3, [&](int64_t) {
    if (barrier->Block()) delete barrier;
  });
}

TEST(ThreadTeamTest, LoopsSideBySideShareTheWorkers) {
  ThreadTeam team(4);
  std::vector<int64_t> sums(2);
  std::vector<std::thread> callers;
  for (int c = 0; c < 2; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 50; ++round) {
        std::vector<int64_t> squares(40);
        team.ForEach(40, [&](int64_t i) { squares[i] = i * i; });
        sums[c] += std::accumulate(squares.begin(), squares.end(), int64_t{0});
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<int64_t>(2, 50 * 20540));
}

TEST(ThreadTeamTest, AMemberMakesRoomForACaller) {
  ThreadTeam team(2);
  absl::Notification second_works, first_is_done;
  std::atomic<int> visited_by_members = 0;
  std::thread second;
  auto* both_work = new absl::Barrier(2);
  const std::thread::id first = std::this_thread::get_id();
  team.ForEach(1000, [&](int64_t i) {
    if (i < 2) {
      // The caller and the only member are in.
      if (both_work->Block()) delete both_work;
      if (std::this_thread::get_id() == first) {
        second = std::thread([&] {
          team.ForEach(2, [&](int64_t j) {
            if (j > 0) return;
            second_works.Notify();
            first_is_done.WaitForNotification();
          });
        });
      }
      second_works.WaitForNotification();
      return;
    }
    if (std::this_thread::get_id() != first) ++visited_by_members;
    std::this_thread::yield();
  });
  EXPECT_EQ(visited_by_members, 0);
  first_is_done.Notify();
  second.join();
}

}  // namespace
}  // namespace cipherd::runtime::host
