// What bad requests leave in the daemon's memory: nothing, kind by kind.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/time/clock.h"
#include "core/base/sanitizers.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/soak/hostile_client.h"
#include "tests/soak/memory_trend.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

class HostileMemoryTest : public DaemonTest {
 protected:
  // What is resident when what was given up is gone and free heap has gone back to the system: no
  // longer falling.
  double SettledBytes() const {
    double least = LeastBytes();
    while (true) {
      const double next = LeastBytes();
      if (next > least - (64 << 10)) return std::min(least, next);
      least = next;
    }
  }

 private:
  // Over some returns of free heap.
  double LeastBytes() const {
    double least = ResidentBytes(daemon_->pid());
    for (int i = 0; i < 30; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
      least = std::min(least, ResidentBytes(daemon_->pid()));
    }
    return least;
  }
};

TEST_F(HostileMemoryTest, BadRequestsLeaveNothingBehind) {
#if CIPHERD_ADDRESS_SANITIZER || CIPHERD_THREAD_SANITIZER
  GTEST_SKIP() << "the sanitizer's allocator keeps what is freed";
#endif
  constexpr char kOther[] = "other";
  ASSERT_OK(
      StartDaemon(WritePrograms({SquareAndTurn(kSmallProgram, 10), SquareAndTurn(kOther, 11)}),
                  kSmallProgram, {"--log-level", "warn", "--free-memory-interval", "0.1"}));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<HostileClient> hostile,
                       HostileClient::Create(Options(), kSmallProgram, kOther));
  // Fills what is bounded: the uploads that are remembered for their tenant, metrics by program.
  constexpr int kWarmUp = 300;
  // Allocators take and keep half a megabyte when they like; so many that it does not matter.
  constexpr int kRequests = 3000;
  for (int kind = 0; kind < HostileClient::kKindCount; ++kind) {
    for (int i = 0; i < kWarmUp; ++i) ASSERT_OK(hostile->Send(kind)) << kind;
    const double before = SettledBytes();
    for (int i = 0; i < kRequests; ++i) ASSERT_OK(hostile->Send(kind)) << kind;
    double bytes = (SettledBytes() - before) / kRequests;
    // A busy machine takes its time over what was given up.
    for (int i = 0; i < 20 && bytes >= 1000; ++i) bytes = (SettledBytes() - before) / kRequests;
    std::printf("kind %d: %.0f bytes a request\n", kind, bytes);
    EXPECT_LT(bytes, 1000) << "kind " << kind;
  }
  EXPECT_OK(hostile->Release());
  EXPECT_EQ(StopDaemon(), 0);
}

}  // namespace
}  // namespace cipherd::testing
