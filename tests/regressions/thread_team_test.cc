// A member of the team that woke for a loop took for granted that the loop still had indices:
// where its caller had taken the last one meanwhile, the process crashed. Members now join the loop
// that woke them without looking for one again; on two processors this test seldom met the crash.
#include "core/runtime/host/thread_team.h"

#include <atomic>
#include <cstdint>

#include "gtest/gtest.h"

namespace cipherd::runtime::host {
namespace {

TEST(ThreadTeamTest, LoopsMayEndBeforeAMemberHasWoken) {
  ThreadTeam team(16);
  std::atomic<int64_t> visited = 0;
  // Short loops in a row: members wake in the middle of one, or at its end.
  constexpr int kRounds = 1'000'000;
  for (int round = 0; round < kRounds; ++round) {
    team.ForEach(2, [&](int64_t) { visited.fetch_add(1, std::memory_order_relaxed); });
  }
  EXPECT_EQ(visited, 2 * kRounds);
}

}  // namespace
}  // namespace cipherd::runtime::host
