// Outputs that a request gets while its replay computes the next ones.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/testing/fault_device.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::FaultDevice;
using ::cipherd::testing::FaultPoint;
using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::SizeIs;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

constexpr int kOutputCount = 3;
constexpr uint64_t kValue = 70;

// A request of tenant 1 that looks at each output when it is told of it.
class EarlyCall {
 public:
  explicit EarlyCall(Engine& engine, RequestHead head) : request_(engine.Open(std::move(head))) {
    EXPECT_OK(engine.Admit(*request_));
    FillInputs(request_->inputs(), kValue);
    request_->set_output_listener([this](size_t count) { OnOutputs(count); });
    engine.Submit(request_, [this](const absl::Status& status) { OnEnd(status); });
  }
  ~EarlyCall() { ended_.WaitForNotification(); }

  const RequestPtr& request() const { return request_; }
  // Blocks until it has been told of `count` outputs.
  void AwaitOutputs(size_t count) {
    const auto enough = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return counts_.size() >= count; };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&enough));
  }
  // What it was told, in order.
  std::vector<size_t> counts() {
    absl::MutexLock lock(&mu_);
    return counts_;
  }
  bool has_ended() const { return ended_.HasBeenNotified(); }
  absl::Status result() {
    ended_.WaitForNotification();
    return result_;
  }
  // It ended with OK, each output had its words when it was told of, and all have them at the end.
  bool is_correct() { return result().ok() && saw_right_words(); }
  // What it was told of was right, however it ended.
  bool saw_right_words() {
    ended_.WaitForNotification();
    return saw_right_words_;
  }
  // Called in the continuation.
  std::function<void()> on_end;

 private:
  void OnOutputs(size_t count) {
    absl::MutexLock lock(&mu_);
    counts_.push_back(count);
    saw_right_words_ &= OutputMatches(request_->outputs(), count - 1, kValue, /*tenant_seed=*/1);
  }
  void OnEnd(const absl::Status& status) {
    if (on_end) on_end();
    result_ = status;
    if (status.ok()) {
      saw_right_words_ &= OutputsMatch(request_->outputs(), kValue, /*tenant_seed=*/1);
      request_->Finish(RequestState::kReplying, absl::OkStatus());
    }
    ended_.Notify();
  }

  RequestPtr request_;
  absl::Mutex mu_;
  std::vector<size_t> counts_ ABSL_GUARDED_BY(mu_);
  bool saw_right_words_ = true;
  absl::Status result_;
  absl::Notification ended_;
};

// Two instances, for batches of two.
class EngineEarlyOutputsTest : public EngineTest,
                               public ::testing::WithParamInterface<CompletionMode> {
 protected:
  void SetUp() override {
    output_count_ = kOutputCount;
    EngineOptions options = SmallEngine();
    options.completion = GetParam();
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> cpu,
                         cipherd::testing::OpenTestDevice("cpu"));
    auto device = std::make_unique<FaultDevice>(std::move(cpu));
    device_ = device.get();
    Start(std::move(device), options);
  }
  ServingSettings Serving(const EngineOptions& options) override {
    ServingSettings settings = options.DefaultServing();
    settings.batch_sizes = {1, 2};
    settings.max_batch_delay = absl::Seconds(10);
    return settings;
  }
  std::unique_ptr<EarlyCall> RunEarly() { return std::make_unique<EarlyCall>(*engine_, Head(1)); }

  FaultDevice* device_ = nullptr;
};

TEST_P(EngineEarlyOutputsTest, EachIsToldWhileTheReplayComputesTheNext) {
  gate_->Close();
  auto call = RunEarly();
  auto other = Run(2, 5);
  // A batch of both, the first one's outputs first.
  for (size_t output = 1; output < kOutputCount; ++output) {
    gate_->Admit(1);
    call->AwaitOutputs(output);
    EXPECT_FALSE(call->has_ended());
    EXPECT_FALSE(other->has_ended());
  }
  EXPECT_THAT(call->counts(), ElementsAre(1, 2));
  gate_->Open();
  EXPECT_OK(call->result());
  EXPECT_TRUE(call->is_correct());
  // The last one came with the end.
  EXPECT_THAT(call->counts(), ElementsAre(1, 2));
  EXPECT_TRUE(other->is_correct()) << "one that wants its outputs at the end";
}

TEST_P(EngineEarlyOutputsTest, EachRequestOfABatchHearsOfAnOutputAsSoonAsItIsComputed) {
  gate_->Close();
  auto first = RunEarly(), second = RunEarly();
  // The CPU computes one item after the other.
  for (size_t output = 1; output < kOutputCount; ++output) {
    gate_->Admit(1);
    first->AwaitOutputs(output);
  }
  gate_->Admit(1);
  for (size_t output = 1; output < kOutputCount; ++output) {
    EXPECT_THAT(second->counts(), SizeIs(output - 1));
    gate_->Admit(1);
    second->AwaitOutputs(output);
  }
  gate_->Open();
  EXPECT_TRUE(first->is_correct());
  EXPECT_TRUE(second->is_correct());
}

TEST_P(EngineEarlyOutputsTest, InstancesServeOneAfterTheOther) {
  for (int round = 0; round < 20; ++round) {
    auto first = RunEarly(), second = RunEarly();
    EXPECT_TRUE(first->is_correct()) << first->result().ToString();
    EXPECT_TRUE(second->is_correct());
    EXPECT_THAT(second->counts(), IsSubsetOf({1, 2})) << "asked for, it may have ended by then";
  }
}

TEST_P(EngineEarlyOutputsTest, OneThatIsCancelledHearsNoMoreAndKeepsItsLeaseUntilItIsTold) {
  gate_->Close();
  auto call = RunEarly(), partner = RunEarly();
  gate_->Admit(1);
  call->AwaitOutputs(1);
  size_t leased_at_end = 0;
  call->on_end = [&] { leased_at_end = served().trees().leased_count(); };
  engine_->Cancel(call->request());
  gate_->Open();
  EXPECT_THAT(call->result(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(call->counts(), ElementsAre(1));
  EXPECT_TRUE(partner->is_correct());
  // Somebody may have been reading what it was told of.
  EXPECT_EQ(leased_at_end, 2u) << "its own, and that of its partner";
  EXPECT_EQ(served().trees().leased_count(), 0u);
}

TEST_P(EngineEarlyOutputsTest, OneThatIsCancelledInTheQueueIsToldOfNothing) {
  gate_->Close();
  auto first = RunEarly(), second = RunEarly(), third = RunEarly(), fourth = RunEarly();
  auto queued = RunEarly();
  engine_->Cancel(queued->request());
  EXPECT_THAT(queued->result(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(queued->counts(), IsEmpty());
  gate_->Open();
  EXPECT_TRUE(first->is_correct());
}

TEST_P(EngineEarlyOutputsTest, AFaultAfterTheFirstOutputEndsTheRequestAndTheWorkerServesAgain) {
  gate_->Close();
  auto call = RunEarly(), partner = RunEarly();
  gate_->Admit(1);
  call->AwaitOutputs(1);
  // The next batch takes the worker out while it is submitted; this one has been launched.
  device_->FailNth(FaultPoint::kGraphLaunch, 1, absl::InternalError("injected"));
  auto third = RunEarly(), fourth = RunEarly();
  const Worker& worker = *engine_->workers()[0];
  while (worker.is_healthy()) std::this_thread::yield();
  gate_->Open();
  for (EarlyCall* failed : {third.get(), fourth.get()}) {
    EXPECT_THAT(failed->result(), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(failed->counts(), IsEmpty());
  }
  // These may come to their end before the completion thread learns of the fault.
  for (EarlyCall* before : {call.get(), partner.get()}) {
    const absl::Status result = before->result();
    if (!result.ok()) {
      EXPECT_THAT(result, StatusIs(absl::StatusCode::kUnavailable));
    }
    EXPECT_TRUE(before->saw_right_words());
  }
  while (!served().is_ready()) std::this_thread::yield();
  auto after = RunEarly(), with_it = RunEarly();
  EXPECT_TRUE(after->is_correct()) << after->result().ToString();
  EXPECT_TRUE(with_it->is_correct());
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineEarlyOutputsTest,
                         ::testing::Values(CompletionMode::kNotified, CompletionMode::kPolled),
                         [](const auto& info) {
                           return info.param == CompletionMode::kPolled ? "polled" : "notified";
                         });

}  // namespace
}  // namespace cipherd::engine
