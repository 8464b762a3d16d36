// Evaluations of many items against a daemon in process.
#include "client/bulk_evaluation.h"

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/session.h"
#include "core/base/status_macros.h"
#include "proto/codec/error_detail.h"
#include "tests/client/fake_service.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kElements = 16;
// session_test.cc has its derivation; sums of 256 errors over the scale 2^40.
constexpr double kTolerance = 256 * 30.5 / (int64_t{1} << 40);

class BulkEvaluationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(client_, Client::Connect(service_.ClientOptions()));
    ASSERT_OK_AND_ASSIGN(session_, Session::Create(*client_, "echo"));
    ASSERT_OK(session_->UploadKeys());
  }

  // Item k is k, k + 1/16, ….
  ItemsView Items(int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      for (int j = 0; j < kElements; ++j) {
        numbers_.push_back(static_cast<double>(k) + j / 16.0);
      }
    }
    return {.numbers = numbers_.data(), .item_count = count, .element_count = kElements};
  }

  absl::Status Start(const ItemsView& items, const BulkEvaluation::Options& options,
                     BulkEvaluation::Callback callback) {
    return BulkEvaluation::Start({*client_, session_->cipher(), session_->key_set_id()}, pool_,
                                 {{"x", items}}, options, std::move(callback));
  }

  absl::StatusOr<BulkResult> Evaluate(const ItemsView& items,
                                      const BulkEvaluation::Options& options = {}) {
    absl::StatusOr<BulkResult> result;
    absl::Notification has_ended;
    CIPHERD_RETURN_IF_ERROR(Start(items, options, [&](absl::StatusOr<BulkResult> outcome) {
      result = std::move(outcome);
      has_ended.Notify();
    }));
    has_ended.WaitForNotification();
    return result;
  }

  FakeService service_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Session> session_;
  std::vector<double> numbers_;
  // The last: its threads use the others.
  WorkPool pool_{2};
};

TEST_F(BulkEvaluationTest, ItemsOfManyRequestsComeBackInOrder) {
  ASSERT_OK_AND_ASSIGN(const BulkResult result, Evaluate(Items(11), {.request_id = "r"}));
  const ItemsArray& y = result.outputs.at("y");
  ASSERT_EQ(y.item_count, 11);
  ASSERT_EQ(y.element_count, kElements);
  for (size_t i = 0; i < y.numbers.size(); ++i) {
    EXPECT_NEAR(y.numbers[i], numbers_[i], kTolerance) << i;
  }
  ASSERT_THAT(result.requests, SizeIs(3));
  for (int r = 0; r < 3; ++r) EXPECT_EQ(result.requests[r].request_id, absl::StrCat("r.", r));
  EXPECT_GT(result.requests[2].received_bytes, 0u);
  EXPECT_EQ(service_.unary_count(), 3);
}

class BulkPartsTest : public BulkEvaluationTest {
 protected:
  // Takes parts; each may come once.
  std::function<void(OutputPart)> Take() {
    return [this](OutputPart part) {
      absl::MutexLock lock(&mu_);
      EXPECT_EQ(part.output, "y");
      EXPECT_EQ(part.items.element_count, kElements);
      EXPECT_TRUE(parts_.emplace(part.first_item, std::move(part.items.numbers)).second);
    };
  }
  void ExpectRight() {
    absl::MutexLock lock(&mu_);
    for (const auto& [first_item, numbers] : parts_) {
      for (size_t i = 0; i < numbers.size(); ++i) {
        EXPECT_NEAR(numbers[i], numbers_[first_item * kElements + i], kTolerance) << i;
      }
    }
  }
  size_t part_count() {
    absl::MutexLock lock(&mu_);
    return parts_.size();
  }

 private:
  absl::Mutex mu_;
  std::map<int64_t, std::vector<double>> parts_ ABSL_GUARDED_BY(mu_);
};

TEST_F(BulkPartsTest, ComeBeforeTheCallbackWhichHasTheReports) {
  ASSERT_OK_AND_ASSIGN(const BulkResult result,
                       Evaluate(Items(11), {.request_id = "r", .on_output = Take()}));
  EXPECT_EQ(part_count(), 3u);
  ExpectRight();
  EXPECT_THAT(result.outputs, IsEmpty());
  ASSERT_THAT(result.requests, SizeIs(3));
  EXPECT_EQ(result.requests[2].request_id, "r.2");
  EXPECT_GT(result.requests[2].received_bytes, 0u);
  EXPECT_EQ(service_.stream_count(), 3);
}

TEST_F(BulkPartsTest, AreGoodWhereAnErrorFollows) {
  service_.behind_outputs = [](grpc::ServerContext&) { return absl::DataLossError("behind"); };
  EXPECT_THAT(Evaluate(Items(4), {.on_output = Take()}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("behind")));
  EXPECT_EQ(part_count(), 1u);
  ExpectRight();
}

TEST_F(BulkPartsTest, ADaemonThatSendsTimesBeforeTheOutputsIsAtFault) {
  service_.sends_times_first = true;
  EXPECT_THAT(Evaluate(Items(4), {.on_output = Take()}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("the stage times")));
  EXPECT_EQ(part_count(), 0u);
}

TEST_F(BulkPartsTest, OfARequestThatThenFailsAsOverloadedAreNotAskedForAgain) {
  const absl::Cleanup stop = [this] { service_.Stop(); };
  std::atomic<int> count = 0;
  service_.behind_outputs = [&](grpc::ServerContext& call) -> absl::Status {
    const int number = ++count;
    if (number == 1) {
      while (count < 2) absl::SleepFor(absl::Milliseconds(1));
      return codec::WithErrorDetail(absl::ResourceExhaustedError("full"),
                                    v1::ERROR_REASON_OVERLOADED, "");
    }
    // It is cancelled. Where the first one waited to be sent again, its end would let that go.
    for (int i = 0; number == 2 && i < 500 && !call.IsCancelled(); ++i) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    return absl::OkStatus();
  };
  EXPECT_THAT(Evaluate(Items(8), {.in_flight = 2, .on_output = Take()}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(count, 2);
  ExpectRight();
}

TEST_F(BulkEvaluationTest, OneRequestHasTheIdAsItIs) {
  ASSERT_OK_AND_ASSIGN(const BulkResult result, Evaluate(Items(4), {.request_id = "r"}));
  ASSERT_THAT(result.requests, SizeIs(1));
  EXPECT_EQ(result.requests[0].request_id, "r");
}

TEST_F(BulkEvaluationTest, AtMostSoManyRequestsAreUnderWay) {
  std::atomic<int> under_way = 0;
  std::atomic<int> most = 0;
  service_.before_evaluation = [&](grpc::ServerContext&) {
    const int now = ++under_way;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    return absl::OkStatus();
  };
  service_.change_evaluation = [&](v1::EvaluateResponse&) { --under_way; };
  ASSERT_OK(Evaluate(Items(40), {.in_flight = 2}).status());
  EXPECT_LE(most, 2);
}

TEST_F(BulkEvaluationTest, TheFirstFailureEndsTheOthers) {
  std::atomic<int> count = 0;
  const absl::Cleanup stop = [this] { service_.Stop(); };
  service_.before_evaluation = [&](grpc::ServerContext&) {
    return ++count == 3 ? absl::DataLossError("the third") : absl::OkStatus();
  };
  EXPECT_THAT(Evaluate(Items(400), {.in_flight = 2}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the third")));
  // Of a hundred; some may be sent before the failure has come.
  EXPECT_LE(count, 20) << "requests were sent after the failure";
}

TEST_F(BulkEvaluationTest, WhatIsRefusedAsOverloadedBesideOthersIsSentAgain) {
  std::atomic<int> refused = 0;
  absl::Mutex mu;
  bool first_is_here = false;
  bool second_is_refused = false;
  service_.before_evaluation = [&](grpc::ServerContext&) -> absl::Status {
    absl::MutexLock lock(&mu);
    if (!std::exchange(first_is_here, true)) {
      // Takes until the other one has been refused: it is under way for sure then.
      mu.Await(absl::Condition(&second_is_refused));
      return absl::OkStatus();
    }
    if (std::exchange(second_is_refused, true)) return absl::OkStatus();
    ++refused;
    return codec::WithErrorDetail(absl::ResourceExhaustedError("full"), v1::ERROR_REASON_OVERLOADED,
                                  "");
  };
  ASSERT_OK_AND_ASSIGN(const BulkResult result, Evaluate(Items(12), {.in_flight = 2}));
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(service_.unary_count(), 4);
  for (size_t i = 0; i < numbers_.size(); ++i) {
    EXPECT_NEAR(result.outputs.at("y").numbers[i], numbers_[i], kTolerance) << i;
  }
}

TEST_F(BulkEvaluationTest, WhatIsRefusedAsOverloadedAloneFails) {
  service_.evaluation_error =
      codec::WithErrorDetail(absl::ResourceExhaustedError("full"), v1::ERROR_REASON_OVERLOADED, "");
  const absl::Status status = Evaluate(Items(12)).status();
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_OVERLOADED) << status;
}

TEST_F(BulkEvaluationTest, CancellationEndsWhatIsUnderWay) {
  const auto cancellation = std::make_shared<Cancellation>();
  absl::Notification is_under_way;
  std::atomic<int> count = 0;
  const absl::Cleanup stop = [this] { service_.Stop(); };
  service_.before_evaluation = [&](grpc::ServerContext& call) {
    if (++count == 1) is_under_way.Notify();
    while (!call.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return absl::CancelledError("");
  };
  absl::StatusOr<BulkResult> result;
  absl::Notification has_ended;
  ASSERT_OK(Start(Items(40), {.in_flight = 3, .cancellation = cancellation},
                  [&](absl::StatusOr<BulkResult> outcome) {
                    result = std::move(outcome);
                    has_ended.Notify();
                  }));
  is_under_way.WaitForNotification();
  cancellation->Cancel();
  has_ended.WaitForNotification();
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_LE(count, 3);
}

TEST_F(BulkEvaluationTest, WhatIsCancelledBeforeItBeginsEndsAllTheSame) {
  const auto cancellation = std::make_shared<Cancellation>();
  cancellation->Cancel();
  EXPECT_THAT(Evaluate(Items(4), {.cancellation = cancellation}),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(service_.unary_count(), 0);
}

TEST_F(BulkEvaluationTest, TheTimeoutIsThatOfTheWhole) {
  service_.before_evaluation = [&](grpc::ServerContext&) {
    absl::SleepFor(absl::Milliseconds(20));
    return absl::OkStatus();
  };
  // 100 requests one after the other take two seconds at least.
  EXPECT_THAT(Evaluate(Items(400), {.timeout = absl::Milliseconds(200), .in_flight = 1}),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(BulkEvaluationTest, WrongInputsAreRefusedBeforeAnythingIsSent) {
  const auto no_callback = [](absl::StatusOr<BulkResult>) { FAIL() << "called"; };
  ItemsView items = Items(11);
  numbers_[9 * kElements + 3] = std::numeric_limits<double>::quiet_NaN();
  const absl::Status status = Start(items, {}, no_callback);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("inputs['x'][9][3]: expected a finite number")));
  ASSERT_TRUE(codec::GetErrorDetail(status).has_value());
  EXPECT_EQ(codec::GetErrorDetail(status)->path(), "inputs['x'][9][3]");
  items.element_count = 8;
  EXPECT_THAT(Start(items, {}, no_callback),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("items of 16 elements")));
  EXPECT_THAT(Start(items, {.in_flight = 0}, no_callback),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in_flight")));
  EXPECT_THAT(Start(items, {.timeout = absl::ZeroDuration()}, no_callback),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("timeout")));
  EXPECT_THAT(BulkEvaluation::Start({*client_, session_->cipher(), ""}, pool_, {{"x", items}}, {},
                                    no_callback),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("upload the keys")));
  EXPECT_EQ(service_.unary_count(), 0);
}

// Whoever waits for the callback may take the inputs away afterwards.
TEST_F(BulkEvaluationTest, InputsAreLetGoOfBeforeTheCallback) {
  const auto owner = std::make_shared<int>(0);
  ItemsView items = Items(8);
  items.owner = owner;
  long uses = -1;
  absl::Notification has_ended;
  ASSERT_OK(Start(std::exchange(items, {}), {}, [&](absl::StatusOr<BulkResult>) {
    uses = owner.use_count();
    has_ended.Notify();
  }));
  has_ended.WaitForNotification();
  EXPECT_EQ(uses, 1);
}

}  // namespace
}  // namespace cipherd::client
