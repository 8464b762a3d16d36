// A call was told that its peer had stalled when the peer had moved and the next wait had begun: a
// healthy watch or stream was then cancelled.
#include <functional>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "core/base/clock.h"
#include "gtest/gtest.h"
#include "server/stall_watch.h"

namespace cipherd::server {
namespace {

class LateStallTest : public ::testing::Test {
 protected:
  // Whether the call is told, where `peer_moves` runs between the end of its time and the moment in
  // which the watch has the call's lock.
  bool IsToldAfter(const std::function<void()>& peer_moves) {
    is_told_ = false;
    call_.AwaitPeer();
    clock_.Advance(absl::Seconds(10));
    std::thread looks;
    {
      absl::MutexLock lock(&mu_);
      looks = std::thread([this] { watch_.Check(); });
      while (!call_.has_stalled()) std::this_thread::yield();
      peer_moves();
    }
    looks.join();
    return is_told_;
  }

  base::FakeClock clock_;
  absl::Mutex mu_;
  bool is_told_ = false;
  StallWatch watch_{absl::Seconds(10), clock_};
  StallWatch::Call call_{watch_, mu_, [this] { is_told_ = true; }};
};

TEST_F(LateStallTest, APeerThatDoesNotMoveHasStalled) {
  EXPECT_TRUE(IsToldAfter([] {}));
}

TEST_F(LateStallTest, NothingIsTooLateOnceItHasCome) {
  EXPECT_FALSE(IsToldAfter([this] { call_.Rest(); }));
}

TEST_F(LateStallTest, TheNextWaitHasItsOwnTime) {
  EXPECT_FALSE(IsToldAfter([this] {
    call_.Rest();
    call_.AwaitPeer();
  }));
}

}  // namespace
}  // namespace cipherd::server
