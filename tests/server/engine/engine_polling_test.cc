// A worker that asks for the end of its batches in place of being told, on streams that the test
// steps.
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

// What a batch of one leaves on the output stream: a wait, the time of its start, the copy of the
// output, and the event that is asked for.
constexpr size_t kOutputTasks = 4;

class EnginePollingTest : public EngineTest {
 protected:
  void SetUp() override {
    std::unique_ptr<SteppedDevice> device = SteppedDevice::Open();
    device_ = device.get();
    EngineOptions options = SmallEngine();
    options.completion = CompletionMode::kPolled;
    Start(std::move(device), options);
    // The events of both instances have happened once: those of earlier batches.
    auto first = Run(1, 1), second = Run(1, 2);
    while (engine_->workers()[0]->instance_counts(served()).leased != 2 && !second->has_ended()) {
      std::this_thread::yield();
    }
    RunUntilEnd(*first);
    RunUntilEnd(*second);
    EXPECT_TRUE(first->is_correct());
    EXPECT_TRUE(second->is_correct());
  }
  void TearDown() override {
    allocations_->Open();
    EngineTest::TearDown();
  }

  runtime::Stream& StreamOf(const std::string& stage) {
    return device_->stream("worker 0 " + stage);
  }
  void RunUntilEnd(Call& call) {
    while (!call.has_ended()) {
      device_->puppet().RunAll();
      std::this_thread::yield();
    }
  }
  // Waits until the device thread has enqueued all of one batch, behind `others` tasks.
  void AwaitEnqueued(size_t others = 0) {
    while (device_->puppet().PendingCount(StreamOf("output")) < others + kOutputTasks) {
      std::this_thread::yield();
    }
  }
  // Whether `call` ends although nothing that it waits for happens: many looks, some milliseconds.
  static bool EndsTooEarly(const Call& call) {
    for (int look = 0; look < 100 && !call.has_ended(); ++look) std::this_thread::yield();
    return call.has_ended();
  }

  SteppedDevice* device_ = nullptr;
  std::shared_ptr<Gate> allocations_ = std::make_shared<Gate>();
};

TEST_F(EnginePollingTest, ARequestEndsWithTheEventBehindItsOutput) {
  auto call = Run(1, 100);
  AwaitEnqueued();
  device_->puppet().RunUntilIdle(StreamOf("transfer"));
  device_->puppet().RunUntilIdle(StreamOf("compute"));
  for (size_t task = 1; task < kOutputTasks; ++task) {
    EXPECT_TRUE(device_->puppet().Step(StreamOf("output")));
  }
  EXPECT_FALSE(EndsTooEarly(*call));
  EXPECT_TRUE(device_->puppet().Step(StreamOf("output")));
  EXPECT_TRUE(call->is_correct());
}

TEST_F(EnginePollingTest, ABatchIsNotAskedForBeforeAllOfItIsEnqueued) {
  auto first = Run(1, 100);
  AwaitEnqueued();
  // The device thread stays where it loads the keys of the second one, whose instance has the event
  // of an earlier batch.
  allocations_->Close();
  device_->faults().InterruptCalls(FaultPoint::kAllocate, [gate = allocations_] { gate->Pass(); });
  auto second = Run(2, 200);
  allocations_->AwaitArrivals(1);
  RunUntilEnd(*first);
  EXPECT_TRUE(first->is_correct());
  EXPECT_FALSE(EndsTooEarly(*second));
  allocations_->Open();
  RunUntilEnd(*second);
  EXPECT_TRUE(second->is_correct());
}

TEST_F(EnginePollingTest, AFailureThatAskingBringsToLightEndsItsRequests) {
  ASSERT_OK(cipherd::testing::FailStream(StreamOf("output"), absl::InternalError("injected")));
  auto call = Run(1, 10);
  // So that enqueuing does not meet the failure.
  AwaitEnqueued(/*others=*/1);
  RunUntilEnd(*call);
  EXPECT_THAT(call->result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(served().trees().leased_count(), 0u);
}

}  // namespace
}  // namespace cipherd::engine
