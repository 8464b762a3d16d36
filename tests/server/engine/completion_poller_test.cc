#include "server/engine/completion_poller.h"

#include <sys/resource.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

class CompletionPollerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, OpenTestDevice("cpu"));
    ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream("work"));
    ASSERT_OK_AND_ASSIGN(event_, device_->CreateEvent());
    gate_.Close();
    ASSERT_OK(stream_->LaunchHost([this] { gate_.Pass(); }));
    ASSERT_OK(stream_->Record(*event_));
  }
  void TearDown() override { gate_.Open(); }
  absl::StatusOr<bool> Await(CompletionPoller poller, std::vector<const runtime::Event*> events,
                             absl::Duration& expected,
                             const CompletionPoller::Listener& listener = {}) {
    return poller.Await(events, expected, give_up_, listener);
  }

  std::unique_ptr<runtime::Device> device_;
  std::shared_ptr<runtime::Event> event_;
  Gate gate_;
  std::unique_ptr<runtime::Stream> stream_;
  std::atomic<bool> give_up_ = false;
  absl::Duration expected_;
};

TEST_F(CompletionPollerTest, EndsWithTheEventAndLearnsWhatToExpect) {
  for (const absl::Duration expected :
       {absl::ZeroDuration(), absl::Milliseconds(1), absl::Seconds(1)}) {
    gate_.Close();
    ASSERT_OK(stream_->LaunchHost([this] { gate_.Pass(); }));
    ASSERT_OK(stream_->Record(*event_));
    const absl::Time start = absl::Now();
    absl::Duration wait = expected;
    std::thread opener([&] {
      gate_.AwaitArrivals(1);
      gate_.Open();
    });
    ASSERT_OK_AND_ASSIGN(const bool has_ended, Await(CompletionPoller(), {event_.get()}, wait));
    opener.join();
    EXPECT_TRUE(has_ended);
    EXPECT_LE(wait, absl::Now() - start);
    EXPECT_GE(wait, absl::ZeroDuration());
    EXPECT_NE(wait, expected);
  }
}

TEST_F(CompletionPollerTest, GivesUpWhenItIsTold) {
  std::thread teller([&] { give_up_ = true; });
  ASSERT_OK_AND_ASSIGN(const bool has_ended, Await(CompletionPoller(), {event_.get()}, expected_));
  teller.join();
  EXPECT_FALSE(has_ended);
}

TEST_F(CompletionPollerTest, AFailureOfTheDeviceEndsTheWait) {
  ASSERT_OK(cipherd::testing::FailStream(*stream_, absl::InternalError("injected")));
  std::shared_ptr<runtime::Event> behind = device_->CreateEvent().value();
  ASSERT_OK(stream_->Record(*behind));
  std::thread opener([&] { gate_.Open(); });
  EXPECT_THAT(Await(CompletionPoller(), {behind.get()}, expected_),
              StatusIs(absl::StatusCode::kInternal));
  opener.join();
}

TEST_F(CompletionPollerTest, SaysOnceThatTheEndIsNearAndNotForTheEndItself) {
  // It looks again between the word and the end: gate, event, gate, last.
  std::shared_ptr<runtime::Event> last = device_->CreateEvent().value();
  Gate second;
  second.Close();
  ASSERT_OK(stream_->LaunchHost([&] { second.Pass(); }));
  ASSERT_OK(stream_->Record(*last));
  absl::Duration wait = absl::Milliseconds(30);
  const absl::Time start = absl::Now();
  absl::Time told_at = absl::InfiniteFuture();
  int told_count = 0;
  ASSERT_OK_AND_ASSIGN(const bool has_ended,
                       Await(CompletionPoller({.near_end = absl::Milliseconds(10)}),
                             {event_.get(), last.get()}, wait,
                             {.on_near_end =
                                  [&] {
                                    if (told_count++ == 0) told_at = absl::Now();
                                    gate_.Open();
                                  },
                              .on_completed = [&](size_t) { second.Open(); }}));
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(told_count, 1);
  EXPECT_GE(told_at - start, absl::Milliseconds(20));
  // What has ended is not near its end.
  told_count = 0;
  ASSERT_OK(Await(CompletionPoller(), {last.get()}, wait, {.on_near_end = [&] { ++told_count; }})
                .status());
  EXPECT_EQ(told_count, 0);
}

TEST_F(CompletionPollerTest, DoesNotSleepLongOverAnEventThatSomebodyWaitsFor) {
  // Early event, gate, then the end of a replay and that of its output, expected in an hour.
  std::shared_ptr<runtime::Event> replayed = device_->CreateEvent().value();
  std::shared_ptr<runtime::Event> last = device_->CreateEvent().value();
  ASSERT_OK(stream_->Record(*replayed));
  ASSERT_OK(stream_->Record(*last));
  absl::Duration expected = absl::Hours(1);
  std::thread opener([&] {
    gate_.AwaitArrivals(1);
    gate_.Open();
  });
  const absl::Time start = absl::Now();
  ASSERT_OK_AND_ASSIGN(
      const bool has_ended,
      Await(CompletionPoller(), {event_.get(), replayed.get(), last.get()}, expected, {}));
  opener.join();
  EXPECT_TRUE(has_ended);
  EXPECT_LT(absl::Now() - start, absl::Minutes(1));
}

// Naps are voluntary context switches. Nobody else takes the event's lock meanwhile.
TEST_F(CompletionPollerTest, DoesNotSleepWhereItIsAskedToBeAwake) {
  const auto sleep_count = [] {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  const auto sleeps_of_a_wait = [&](absl::Duration awake) {
    give_up_ = false;
    absl::Duration expected = absl::Milliseconds(400);
    std::thread teller([this] {
      absl::Notification().WaitForNotificationWithTimeout(absl::Milliseconds(300));
      give_up_ = true;
    });
    CompletionPoller poller;
    const int64_t before = sleep_count();
    EXPECT_OK(poller.Await(std::vector<const runtime::Event*>{event_.get()}, expected, give_up_, {},
                           awake));
    const int64_t sleeps = sleep_count() - before;
    teller.join();
    return sleeps;
  };
  // An eighth of the expected time each.
  EXPECT_GE(sleeps_of_a_wait(absl::ZeroDuration()), 3);
  EXPECT_LE(sleeps_of_a_wait(absl::Seconds(1)), 1);
}

TEST_F(CompletionPollerTest, TellsOfAnEventWhileALaterOneIsAwaited) {
  // gate, event, gate, last.
  std::shared_ptr<runtime::Event> last = device_->CreateEvent().value();
  Gate second;
  second.Close();
  ASSERT_OK(stream_->LaunchHost([&] { second.Pass(); }));
  ASSERT_OK(stream_->Record(*last));
  std::thread opener([&] {
    gate_.AwaitArrivals(1);
    gate_.Open();
  });
  std::vector<size_t> told;
  // Until it is told of the first one, the last one does not come.
  ASSERT_OK_AND_ASSIGN(const bool has_ended, Await(CompletionPoller(), {event_.get(), last.get()},
                                                   expected_, {.on_completed = [&](size_t event) {
                                                     told.push_back(event);
                                                     second.Open();
                                                   }}));
  opener.join();
  EXPECT_TRUE(has_ended);
  EXPECT_EQ(told, std::vector<size_t>{0});
  // All at once: nothing is left to be done meanwhile.
  ASSERT_OK(Await(CompletionPoller(), {event_.get(), last.get()}, expected_,
                  {.on_completed = [&](size_t) { told.clear(); }})
                .status());
  EXPECT_EQ(told.size(), 1u);
}

}  // namespace
}  // namespace cipherd::engine
