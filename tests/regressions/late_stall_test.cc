// A call was told that its peer had stalled when the peer had moved and the next wait had begun: a
// healthy watch or stream was then cancelled.
#include <functional>
#include <utility>

#include "core/base/clock.h"
#include "gtest/gtest.h"
#include "server/stall_watch.h"

namespace cipherd::server {
namespace {

TEST(LateStallTest, IsNoneOnceThePeerHasMoved) {
  base::FakeClock clock;
  StallWatch watch(absl::Seconds(10), clock);
  std::function<void()> peer_moves;
  bool has_stalled = false;
  StallWatch::Call call(watch, [&] {
    peer_moves();
    has_stalled = call.has_stalled();
  });
  const auto stalls_where = [&](std::function<void()> moves) {
    peer_moves = std::move(moves);
    call.AwaitPeer();
    EXPECT_FALSE(call.has_stalled());
    clock.Advance(absl::Seconds(10));
    watch.Check();
    return has_stalled;
  };
  EXPECT_TRUE(stalls_where([] {}));
  EXPECT_FALSE(stalls_where([&] { call.Rest(); }));
  EXPECT_FALSE(stalls_where([&] {
    call.Rest();
    call.AwaitPeer();
  })) << "told of the former wait";
}

}  // namespace
}  // namespace cipherd::server
