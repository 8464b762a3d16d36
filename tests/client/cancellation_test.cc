#include "client/cancellation.h"

#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace cipherd::client {
namespace {

TEST(CancellationTest, ScopesHearOfItOnceAndOnlyWhileTheyLive) {
  const auto cancellation = std::make_shared<Cancellation>();
  int before = 0, during = 0, after = 0;
  {
    const Cancellation::Scope gone(cancellation, [&] { ++before; });
  }
  const Cancellation::Scope scope(cancellation, [&] { ++during; });
  EXPECT_FALSE(cancellation->is_cancelled());
  cancellation->Cancel();
  cancellation->Cancel();
  const Cancellation::Scope late(cancellation, [&] { ++after; });
  EXPECT_EQ(before, 0);
  EXPECT_EQ(during, 1);
  EXPECT_EQ(after, 1) << "cancelled already";
  EXPECT_TRUE(cancellation->is_cancelled());
}

TEST(CancellationTest, WaitsEndWithIt) {
  Cancellation cancellation;
  EXPECT_FALSE(cancellation.WaitFor(absl::Milliseconds(1)));
  std::thread canceller([&] { cancellation.Cancel(); });
  EXPECT_TRUE(cancellation.WaitFor(absl::InfiniteDuration()));
  canceller.join();
}

TEST(CancellationTest, NoneIsNeverCancelled) {
  const Cancellation::Scope scope(nullptr, [] { FAIL(); });
}

}  // namespace
}  // namespace cipherd::client
