// Failures of work on host devices, beyond what every device promises.
#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "core/runtime/host/task_stream.h"
#include "gtest/gtest.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::runtime::host {
namespace {

using ::cipherd::testing::HoldStream;
using ::cipherd::testing::StatusIs;
using ::cipherd::testing::StreamHold;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInternal = absl::StatusCode::kInternal;

class HostFailureTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    device_ = testing::OpenTestDevice(GetParam()).value();
    a_ = device_->CreateStream("a").value();
    b_ = device_->CreateStream("b").value();
    event_ = device_->CreateEvent().value();
  }
  static TaskStream& Tasks(Stream& stream) { return static_cast<TaskStream&>(stream); }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> a_;
  std::unique_ptr<Stream> b_;
  std::shared_ptr<Event> event_;
};
INSTANTIATE_TEST_SUITE_P(Devices, HostFailureTest,
                         ::testing::Values("cpu", "puppet", "puppet_eager"),
                         testing::DeviceParamName);

TEST_P(HostFailureTest, TheErrorNamesStreamAndTaskAndKeepsItsCode) {
  ASSERT_OK(Tasks(*a_).Submit("ntt", [] { return absl::DataLossError("bad twiddle"); }));
  EXPECT_THAT(a_->Synchronize(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("'a'"), HasSubstr("ntt"), HasSubstr("bad twiddle"))));
}

TEST_P(HostFailureTest, AnExceptionIsAFailedTask) {
  ASSERT_OK(
      Tasks(*a_).Submit("throws", []() -> absl::Status { throw std::runtime_error("thrown"); }));
  EXPECT_THAT(a_->Synchronize(), StatusIs(kInternal, HasSubstr("thrown")));
}

TEST_P(HostFailureTest, AStreamThatWaitsOnAFailedOneFailsToo) {
  std::atomic<bool> ran{false};
  StreamHold hold = HoldStream(*a_);
  ASSERT_OK(testing::FailStream(*a_, absl::InternalError("fault")));
  ASSERT_OK(a_->Record(*event_));
  ASSERT_OK(b_->Wait(*event_));
  ASSERT_OK(b_->LaunchHost([&] { ran = true; }));
  hold.Release();
  EXPECT_THAT(b_->Synchronize(), StatusIs(kInternal, AllOf(HasSubstr("fault"), HasSubstr("'b'"))));
  EXPECT_FALSE(ran);
}

TEST_P(HostFailureTest, AStreamThatWaitedForWorkBeforeTheFailureGoesOn) {
  StreamHold hold = HoldStream(*a_);
  ASSERT_OK(a_->Record(*event_));
  ASSERT_OK(testing::FailStream(*a_, absl::InternalError("fault")));
  ASSERT_OK(b_->Wait(*event_));
  hold.Release();
  EXPECT_THAT(a_->Synchronize(), StatusIs(kInternal));
  EXPECT_OK(b_->Synchronize());
  EXPECT_THAT(device_->health(), StatusIs(kInternal, HasSubstr("'a'")));
}

TEST_P(HostFailureTest, AFailingNodeFailsTheStreamThatLaunchedTheGraph) {
  ASSERT_OK(a_->BeginCapture(false));
  ASSERT_OK(Tasks(*a_).Submit("node", [] { return absl::InternalError("fault"); }));
  ASSERT_OK_AND_ASSIGN(auto graph, a_->EndCapture());
  EXPECT_OK(a_->Synchronize());
  ASSERT_OK(graph->Launch(*b_));
  EXPECT_THAT(b_->Synchronize(), StatusIs(kInternal, AllOf(HasSubstr("node"), HasSubstr("'b'"))));
  EXPECT_THAT(graph->Launch(*b_), StatusIs(kInternal));
  EXPECT_OK(a_->Synchronize());
}

TEST_P(HostFailureTest, ANodeThatFailsBeforeARecordForLaunchesFailsWhoWaitsForIt) {
  const std::shared_ptr<Event> before = device_->CreateEvent().value();
  std::atomic<bool> ran{false};
  ASSERT_OK(a_->BeginCapture(false));
  ASSERT_OK(a_->RecordInLaunches(before));
  ASSERT_OK(Tasks(*a_).Submit("node", [] { return absl::InternalError("fault"); }));
  ASSERT_OK(a_->RecordInLaunches(event_));
  ASSERT_OK_AND_ASSIGN(auto graph, a_->EndCapture());
  auto c = device_->CreateStream("c").value();
  ASSERT_OK(graph->Launch(*a_));
  ASSERT_OK(b_->Wait(*event_));
  ASSERT_OK(b_->LaunchHost([&] { ran = true; }));
  ASSERT_OK(c->Wait(*before));
  EXPECT_THAT(b_->Synchronize(), StatusIs(kInternal, AllOf(HasSubstr("node"), HasSubstr("fault"))));
  EXPECT_FALSE(ran);
  EXPECT_OK(c->Synchronize());
  EXPECT_THAT(device_->health(), StatusIs(kInternal, AllOf(HasSubstr("'a'"), HasSubstr("node"))));
}

TEST_P(HostFailureTest, ALaunchThatIsDroppedFailsWhoWaitsForItsRecords) {
  ASSERT_OK(a_->BeginCapture(false));
  ASSERT_OK(a_->RecordInLaunches(event_));
  ASSERT_OK_AND_ASSIGN(auto graph, a_->EndCapture());
  StreamHold hold = HoldStream(*a_);
  ASSERT_OK(testing::FailStream(*a_, absl::InternalError("fault")));
  ASSERT_OK(graph->Launch(*a_));
  ASSERT_OK(b_->Wait(*event_));
  hold.Release();
  EXPECT_THAT(b_->Synchronize(), StatusIs(kInternal));
  EXPECT_THAT(event_->Query(), StatusIs(kInternal));
}

TEST_P(HostFailureTest, DroppedWorkLetsGoOfWhatItOwned) {
  auto owned = std::make_shared<int>(1);
  StreamHold hold = HoldStream(*a_);
  ASSERT_OK(testing::FailStream(*a_, absl::InternalError("fault")));
  ASSERT_OK(a_->LaunchHost([owned] {}));
  hold.Release();
  EXPECT_THAT(a_->Synchronize(), StatusIs(kInternal));
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_P(HostFailureTest, FinishedWorkLetsGoOfWhatItOwnedBeforeItCountsAsDone) {
  auto owned = std::make_shared<int>(1);
  ASSERT_OK(a_->LaunchHost([owned] {}));
  ASSERT_OK(a_->Synchronize());
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace cipherd::runtime::host
