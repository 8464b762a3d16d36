// A device that fails while requests are on it.
#include <cctype>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/testing/fault_device.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::FaultDevice;
using ::cipherd::testing::FaultPoint;
using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

class EngineFaultTest : public EngineTest, public ::testing::WithParamInterface<FaultPoint> {
 protected:
  void StartFaulty() {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> inner, OpenTestDevice("cpu"));
    auto device = std::make_unique<FaultDevice>(std::move(inner));
    device_ = device.get();
    Start(std::move(device), SmallEngine());
    engine_->set_readiness_listener([this](std::string_view, bool ready) { is_ready_ = ready; });
  }

  FaultDevice* device_ = nullptr;
  std::atomic<bool> is_ready_ = true;
};

TEST_P(EngineFaultTest, RequestsEndWithUnavailableAndNothingLeaks) {
  StartFaulty();
  ASSERT_TRUE(Run(1, 1)->is_correct());
  device_->FailNth(GetParam(), 1, absl::InternalError("injected"));
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(Run(1, i));
  for (auto& call : calls) {
    EXPECT_THAT(call->result(), StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_EQ(ReasonOf(call->result()), FailureReason::kUnavailable);
  }
  while (is_ready_) std::this_thread::yield();
  EXPECT_FALSE(served().is_ready());
  EXPECT_FALSE(engine_->workers()[0]->is_healthy());
  EXPECT_THAT(Run(1, 9)->result(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(served().trees().leased_count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Points, EngineFaultTest,
                         ::testing::Values(FaultPoint::kCopy, FaultPoint::kGraphLaunch,
                                           FaultPoint::kWait, FaultPoint::kRecord,
                                           FaultPoint::kLaunchHost),
                         [](const auto& info) {
                           std::string name(cipherd::testing::ToString(info.param));
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

}  // namespace
}  // namespace cipherd::engine
