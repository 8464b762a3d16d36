#include "server/engine/completion_poller.h"

#include <atomic>
#include <memory>
#include <thread>

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
    ASSERT_OK_AND_ASSIGN(const bool has_ended, CompletionPoller().Await(*event_, wait, give_up_));
    opener.join();
    EXPECT_TRUE(has_ended);
    EXPECT_LE(wait, absl::Now() - start);
    EXPECT_GE(wait, absl::ZeroDuration());
    EXPECT_NE(wait, expected);
  }
}

TEST_F(CompletionPollerTest, GivesUpWhenItIsTold) {
  std::thread teller([&] { give_up_ = true; });
  ASSERT_OK_AND_ASSIGN(const bool has_ended,
                       CompletionPoller().Await(*event_, expected_, give_up_));
  teller.join();
  EXPECT_FALSE(has_ended);
}

TEST_F(CompletionPollerTest, AFailureOfTheDeviceEndsTheWait) {
  ASSERT_OK(cipherd::testing::FailStream(*stream_, absl::InternalError("injected")));
  std::shared_ptr<runtime::Event> behind = device_->CreateEvent().value();
  ASSERT_OK(stream_->Record(*behind));
  std::thread opener([&] { gate_.Open(); });
  EXPECT_THAT(CompletionPoller().Await(*behind, expected_, give_up_),
              StatusIs(absl::StatusCode::kInternal));
  opener.join();
}

}  // namespace
}  // namespace cipherd::engine
