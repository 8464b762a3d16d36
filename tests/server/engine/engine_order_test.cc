// What of different requests may overlap, and what may not, on streams that the test steps.
#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/server/engine/stepped_device.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::FaultPoint;
using ::cipherd::testing::StatusIs;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

class EngineOrderTest : public EngineTest {
 protected:
  void StartStepped(int instances, int workers = 1) {
    std::unique_ptr<SteppedDevice> device = SteppedDevice::Open();
    device_ = device.get();
    EngineOptions options = SmallEngine();
    options.instances = instances;
    options.workers = workers;
    Start(std::move(device), options);
    submitted_before_ = device_->faults().call_count(FaultPoint::kLaunchHost);
  }

  // Waits until the device thread has enqueued everything of `count` requests.
  void AwaitSubmitted(int count) {
    const absl::Time start = absl::Now();
    while (device_->faults().call_count(FaultPoint::kLaunchHost) < submitted_before_ + count) {
      std::this_thread::yield();
      ASSERT_LT(absl::Now() - start, absl::Seconds(30));
    }
  }
  int submitted_count() {
    return device_->faults().call_count(FaultPoint::kLaunchHost) - submitted_before_;
  }

  runtime::Stream& transfer(int worker = 0) { return StreamOf(worker, "transfer"); }
  runtime::Stream& compute(int worker = 0) { return StreamOf(worker, "compute"); }
  runtime::Stream& output(int worker = 0) { return StreamOf(worker, "output"); }
  runtime::Stream& StreamOf(int worker, const std::string& stage) {
    return device_->stream("worker " + std::to_string(worker) + " " + stage);
  }
  size_t RunIdle(runtime::Stream& stream) { return device_->puppet().RunUntilIdle(stream); }
  size_t Pending(runtime::Stream& stream) { return device_->puppet().PendingCount(stream); }

  SteppedDevice* device_ = nullptr;
  int submitted_before_ = 0;
};

TEST_F(EngineOrderTest, CopiesOfOneRequestLieUnderTheComputeOfAnother) {
  StartStepped(/*instances=*/2);
  auto first = Run(1, 100), second = Run(2, 200);
  AwaitSubmitted(2);

  // Both transfers complete before anything is computed.
  RunIdle(transfer());
  EXPECT_EQ(Pending(transfer()), 0u);
  // Both replays complete before any output is copied.
  RunIdle(compute());
  EXPECT_EQ(Pending(compute()), 0u);
  EXPECT_FALSE(first->has_ended());
  RunIdle(output());
  EXPECT_TRUE(first->is_correct());
  EXPECT_TRUE(second->is_correct());
}

TEST_F(EngineOrderTest, ComputeWaitsForItsOwnTransferAndOutputForItsOwnReplay) {
  StartStepped(/*instances=*/2);
  auto call = Run(1, 100);
  AwaitSubmitted(1);
  // The worst order: the later streams are asked first, and must not run ahead.
  RunIdle(output());
  RunIdle(compute());
  RunIdle(output());
  EXPECT_FALSE(call->has_ended());
  RunIdle(transfer());
  RunIdle(output());
  EXPECT_FALSE(call->has_ended());
  RunIdle(compute());
  RunIdle(output());
  EXPECT_TRUE(call->is_correct());
}

TEST_F(EngineOrderTest, ABorrowedOutputIsCopiedBeforeItsInstanceReplaysAgain) {
  StartStepped(/*instances=*/1);
  auto first = Run(1, 100), second = Run(1, 200);
  AwaitSubmitted(1);
  // Everything but the output runs as far as it may.
  for (int i = 0; i < 3; ++i) {
    RunIdle(transfer());
    RunIdle(compute());
  }
  EXPECT_EQ(submitted_count(), 1);
  EXPECT_EQ(engine_->scheduler().queued_count(served()), 1u);

  RunIdle(output());
  EXPECT_TRUE(first->is_correct());
  AwaitSubmitted(2);
  device_->puppet().RunAll();
  EXPECT_TRUE(second->is_correct());
}

TEST_F(EngineOrderTest, KeysAreLoadedBehindNoReplayAndAReplayWaitsForItsKeys) {
  StartStepped(/*instances=*/2);
  {
    auto warm = Run(1, 1);
    AwaitSubmitted(1);
    device_->puppet().RunAll();
    ASSERT_TRUE(warm->is_correct());
  }
  // Tenant 1's keys are resident, tenant 2's are not.
  auto resident = Run(1, 10), loading = Run(2, 20);
  AwaitSubmitted(3);
  RunIdle(compute());
  RunIdle(output());
  EXPECT_FALSE(loading->has_ended());
  RunIdle(transfer());
  RunIdle(compute());
  RunIdle(output());
  EXPECT_TRUE(resident->is_correct());
  EXPECT_TRUE(loading->is_correct());
  EXPECT_EQ(engine_->key_residency().stats().loads, 2u);
}

TEST_F(EngineOrderTest, AReplayWaitsForKeysThatAnotherWorkerLoads) {
  StartStepped(/*instances=*/1, /*workers=*/2);
  auto first = Run(1, 10), second = Run(1, 20);
  AwaitSubmitted(2);
  EXPECT_EQ(engine_->key_residency().stats().loads, 1u);
  const int loader = Pending(transfer(0)) > Pending(transfer(1)) ? 0 : 1;
  const int other = 1 - loader;
  RunIdle(transfer(other));
  EXPECT_EQ(Pending(transfer(other)), 0u);
  RunIdle(compute(other));
  RunIdle(output(other));
  EXPECT_GT(Pending(output(other)), 0u) << "its keys have not been copied yet";
  RunIdle(transfer(loader));
  RunIdle(compute(other));
  RunIdle(output(other));
  EXPECT_EQ(Pending(output(other)), 0u);
  device_->puppet().RunAll();
  EXPECT_TRUE(first->is_correct());
  EXPECT_TRUE(second->is_correct());
}

TEST_F(EngineOrderTest, AStreamThatFailsSilentlyEndsItsRequests) {
  StartStepped(/*instances=*/2);
  ASSERT_OK(cipherd::testing::FailStream(transfer(), absl::InternalError("injected")));
  auto first = Run(1, 10), second = Run(1, 20);
  AwaitSubmitted(2);
  // The failure drops all later work, the word of completion included.
  device_->puppet().RunAll();
  EXPECT_THAT(first->result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(second->result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(served().trees().leased_count(), 0u);
  EXPECT_FALSE(engine_->workers()[0]->is_healthy());
}

TEST_F(EngineOrderTest, SwitchingTenantsWithResidentKeysCopiesNoKey) {
  StartStepped(/*instances=*/2);
  int count = 0;
  for (int tenant : {1, 2, 1, 2, 2, 1}) {
    auto call = Run(tenant, 7);
    AwaitSubmitted(++count);
    device_->puppet().RunAll();
    EXPECT_TRUE(call->is_correct());
  }
  EXPECT_EQ(engine_->key_residency().stats().loads, 2u);
}

}  // namespace
}  // namespace cipherd::engine
