#include "client/load/load_generator.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "proto/codec/error_detail.h"
#include "tests/client/load/load_fixture.h"

namespace cipherd::client {
namespace {

// Evaluations in the fake daemon that wait until the gate is opened.
class Gate {
 public:
  void Pass() {
    absl::MutexLock lock(&mu_);
    ++waiting_;
    ++arrived_;
    mu_.Await(absl::Condition(&is_open_));
    --waiting_;
  }
  void Open() {
    absl::MutexLock lock(&mu_);
    is_open_ = true;
  }
  bool AwaitWaiting(int count) {
    absl::MutexLock lock(&mu_);
    const auto enough = [&] { return waiting_ >= count; };
    return mu_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20));
  }
  int arrived() {
    absl::MutexLock lock(&mu_);
    return arrived_;
  }

 private:
  absl::Mutex mu_;
  bool is_open_ = false;
  int waiting_ = 0;
  int arrived_ = 0;
};

class LoadGeneratorTest : public LoadTest {
 protected:
  void SetUp() override { Prepare(); }
  void HoldEvaluations() {
    service_.change_evaluation = [this](v1::EvaluateResponse&) { gate_.Pass(); };
  }
  static bool AwaitSent(const LoadGenerator& load, uint64_t count) {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (load.sent_count() < count) {
      if (absl::Now() > end) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }

  Gate gate_;
};

TEST_F(LoadGeneratorTest, ClosedLoopHasAsManyUnderWayAsItHasClients) {
  HoldEvaluations();
  const auto load = LoadGenerator::Start(*workload_, {}, /*level=*/64);
  EXPECT_TRUE(gate_.AwaitWaiting(64));
  EXPECT_EQ(load->sent_count(), 64u);
  EXPECT_EQ(load->in_flight(), 64);
  EXPECT_TRUE(load->TakeSamples().empty());
  gate_.Open();
  EXPECT_TRUE(AwaitSent(*load, 128)) << "clients that have their answer send nothing more";
  load->Stop();
  const std::vector<Sample> samples = load->TakeSamples();
  EXPECT_EQ(samples.size(), load->sent_count());
  for (const Sample& sample : samples) {
    EXPECT_EQ(sample.outcome, Outcome::kSucceeded);
    EXPECT_GT(sample.received_bytes, 0u);
    EXPECT_GT(sample.latency, absl::ZeroDuration());
  }
  const int arrived = gate_.arrived();
  EXPECT_EQ(static_cast<uint64_t>(arrived), load->sent_count()) << "something is sent after Stop";
}

TEST_F(LoadGeneratorTest, OpenLoopSendsOnWhileTheDaemonStalls) {
  HoldEvaluations();
  const auto load =
      LoadGenerator::Start(*workload_, {.mode = LoadMode::kRequestRate}, /*level=*/500);
  EXPECT_TRUE(gate_.AwaitWaiting(40)) << "no answer has come, and requests are due all the same";
  gate_.Open();
  load->Stop();
  EXPECT_EQ(load->TakeSamples().size(), load->sent_count());
}

TEST_F(LoadGeneratorTest, LateRequestsKeepTheirPlaceInTheScheduleAndLatencyCountsFromIt) {
  HoldEvaluations();
  const auto load = LoadGenerator::Start(
      *workload_, {.mode = LoadMode::kRequestRate, .max_in_flight = 1}, /*level=*/500);
  EXPECT_TRUE(gate_.AwaitWaiting(1));
  // 20 are due by then, and one may be sent.
  const absl::Time opened = absl::Now() + absl::Milliseconds(40);
  absl::SleepFor(opened - absl::Now());
  EXPECT_EQ(load->sent_count(), 1u);
  gate_.Open();
  EXPECT_TRUE(AwaitSent(*load, 20));
  load->Stop();
  std::vector<Sample> samples = load->TakeSamples();
  ASSERT_GE(samples.size(), 20u);
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.due < b.due; });
  for (size_t i = 0; i < samples.size(); ++i) {
    // To the nanosecond: the schedule does not move.
    EXPECT_NEAR(absl::ToDoubleSeconds(samples[i].due - samples[0].due), i * 0.002, 1e-8);
    EXPECT_GE(samples[i].latency, samples[i].lag);
  }
  // Due 2 ms after the start, sent when the first was answered.
  EXPECT_GE(samples[1].lag, absl::Milliseconds(30));
  EXPECT_GE(samples[1].latency, absl::Milliseconds(30));
}

TEST_F(LoadGeneratorTest, WrongResultsAreFound) {
  std::atomic<int> count{0};
  service_.change_evaluation = [&](v1::EvaluateResponse& response) {
    // One bit, and still a residue.
    if (++count % 4 == 0) (*response.mutable_payload())[100] ^= 1;
  };
  const auto load = LoadGenerator::Start(*workload_, {}, /*level=*/4);
  EXPECT_TRUE(AwaitSent(*load, 200));
  load->Stop();
  int wrong = 0;
  for (const Sample& sample : load->TakeSamples()) wrong += sample.outcome == Outcome::kWrong;
  EXPECT_EQ(wrong, count / 4);
}

TEST_F(LoadGeneratorTest, CancelledRequestsAreNoFailures) {
  HoldEvaluations();
  const auto load = LoadGenerator::Start(*workload_, {.cancel_share = 1}, /*level=*/4);
  EXPECT_TRUE(AwaitSent(*load, 20));
  gate_.Open();
  load->Stop();
  int cancelled = 0;
  for (const Sample& sample : load->TakeSamples()) {
    EXPECT_NE(sample.outcome, Outcome::kFailed) << absl::StatusCodeToString(sample.code);
    cancelled += sample.outcome == Outcome::kCancelled;
  }
  EXPECT_GE(cancelled, 16);
}

TEST_F(LoadGeneratorTest, ClientsThatAreRefusedWaitBeforeTheyTryAgain) {
  service_.evaluation_error =
      codec::WithErrorDetail(absl::ResourceExhaustedError("full"), v1::ERROR_REASON_OVERLOADED, "");
  const auto load =
      LoadGenerator::Start(*workload_, {.retry_delay = absl::Milliseconds(30)}, /*level=*/2);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(AwaitSent(*load, 6));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(60)) << "three rounds need two waits";
  load->Stop();
  for (const Sample& sample : load->TakeSamples()) {
    EXPECT_EQ(sample.code, absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(sample.reason, v1::ERROR_REASON_OVERLOADED);
  }
}

TEST_F(LoadGeneratorTest, DeadlinesGoWithRequests) {
  HoldEvaluations();
  const auto load =
      LoadGenerator::Start(*workload_, {.deadline = absl::Milliseconds(20)}, /*level=*/2);
  EXPECT_TRUE(AwaitSent(*load, 4));
  gate_.Open();
  load->Stop();
  const std::vector<Sample> samples = load->TakeSamples();
  EXPECT_GE(
      std::count_if(samples.begin(), samples.end(),
                    [](const Sample& s) { return s.code == absl::StatusCode::kDeadlineExceeded; }),
      2);
}

}  // namespace
}  // namespace cipherd::client
