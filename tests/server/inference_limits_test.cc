// Bounds on calls of the Open Inference Protocol: on their messages, their number and their time.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tests/server/inference_fixture.h"
#include "tests/testing/relay.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

// Calls that have sent nothing yet.
class OpenCalls {
 public:
  OpenCalls(std::shared_ptr<grpc::Channel> channel, int count) : stub_(std::move(channel)) {
    for (int i = 0; i < count; ++i) {
      contexts_.push_back(std::make_unique<grpc::ClientContext>());
      calls_.push_back(stub_.PrepareCall(contexts_.back().get(), kModelInfer, &queue_));
      calls_.back()->StartCall(nullptr);
      Await();
    }
  }
  void Cancel() {
    for (const auto& context : contexts_) context->TryCancel();
    for (const auto& call : calls_) {
      call->Finish(&status_, nullptr);
      Await();
    }
  }
  // Of the only call.
  grpc::Status Finish() {
    calls_[0]->Finish(&status_, nullptr);
    Await();
    return status_;
  }

 private:
  void Await() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
  std::vector<std::unique_ptr<grpc::GenericClientAsyncReaderWriter>> calls_;
  grpc::Status status_;
};

// Its own options.
class BoundedInferenceTest : public InferenceTest {
 protected:
  void SetUp() override {}
};

TEST_F(BoundedInferenceTest, RoomForMessagesIsTakenBeforeTheyCome) {
  StartWith([](ServerOptions& options) {
    // Three of the largest.
    options.inference.max_payload_bytes = 1 << 20;
    options.inference.message_memory_bytes = 6 << 20;
  });
  EXPECT_OK(Infer(Good()));
  OpenCalls calls(NewChannel(), 3);
  absl::Status refused;
  while (refused.ok()) refused = Infer(Good());
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("ModelInfer")));
  EXPECT_EQ(client::ReasonOf(refused), v1::ERROR_REASON_OVERLOADED);
  EXPECT_TRUE(client::RetryDelayOf(refused).has_value());
  calls.Cancel();
  while (!Infer(Good()).ok()) {
  }
}

TEST_F(BoundedInferenceTest, AMessageAboveItsLimitIsRefused) {
  // The outputs fit, the inputs do not.
  StartWith([](ServerOptions& options) { options.inference.max_payload_bytes = 14 << 10; });
  const absl::Status refused = Infer(Good());
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("use EvaluateStream")));
  EXPECT_EQ(client::ReasonOf(refused), v1::ERROR_REASON_LIMIT_EXCEEDED);
  EXPECT_EQ(LeasedTrees(), 0u);
  ModelInferRequest request = Good();
  request.mutable_raw_input_contents(0)->resize(6 << 20);
  EXPECT_THAT(Infer(request), StatusIs(absl::StatusCode::kResourceExhausted));
  ExpectGoodRequestSucceeds();
}

TEST_F(BoundedInferenceTest, TheLimitMayBeAboveThatOfOtherCalls) {
  StartWith([](ServerOptions& options) { options.inference.max_payload_bytes = 8 << 20; });
  ModelInferRequest request = Good();
  request.mutable_raw_input_contents(0)->resize(7 << 20);
  // Received and looked at.
  EXPECT_THAT(Infer(request), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("7340032")));
  // Those have a limit of their own.
  WireRequest own = GoodOfTheDaemonsOwn(1);
  own.payload.resize(7 << 20);
  v1::EvaluateResponse response;
  EXPECT_EQ(EvaluateUnary(own, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_OK(Infer(Good()));
}

TEST_F(BoundedInferenceTest, CallsBeyondTheLimitOfAllAreRefused) {
  StartWith([](ServerOptions& options) { options.transport.calls.max_calls = 2; });
  OpenCalls calls(NewChannel(), 2);
  absl::Status refused;
  while (refused.ok()) refused = Infer(Good());
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2 calls")));
  calls.Cancel();
  while (!Infer(Good()).ok()) {
  }
}

TEST_F(BoundedInferenceTest, ATenantsQuotaHoldsHereToo) {
  StartWith([](ServerOptions& options) {
    options.engine.quotas.requests_per_second = 0.1;
    options.engine.quotas.request_burst = 1;
  });
  EXPECT_OK(Infer(Good()));
  const absl::Status refused = Infer(Good());
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("quota")));
  EXPECT_TRUE(client::RetryDelayOf(refused).has_value());
}

TEST_F(BoundedInferenceTest, AMessageThatDoesNotComeEndsItsCall) {
  StartWith(
      [](ServerOptions& options) { options.transport.stall_timeout = absl::Milliseconds(300); });
  const absl::Status status = FromGrpcStatus(OpenCalls(NewChannel(), 1).Finish());
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(client::ReasonOf(status), v1::ERROR_REASON_STALLED);
}

// Small enough for gRPC to take it whole, larger than what its client lets come: the request has
// ended, and the call does when its time is over.
TEST_F(BoundedInferenceTest, AResultThatIsNotReadHoldsNeitherItsRequestNorItsCall) {
  StartWith([](ServerOptions& options) {
    options.transport.stall_timeout = absl::Milliseconds(300);
    options.transport.calls.max_calls = 1;
  });
  cipherd::testing::Relay relay(server_->port());
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 2048);
  const auto unread_stub = inference::GRPCInferenceService::NewStub(
      grpc::CreateCustomChannel(relay.address(), grpc::InsecureChannelCredentials(), arguments));
  const ModelInferRequest request = Good();
  const auto infer_unread = [&](grpc::ClientContext& context) {
    ModelInferResponse response;
    return FromGrpcStatus(unread_stub->ModelInfer(&context, request, &response));
  };
  grpc::ClientContext first, second;
  ASSERT_OK(infer_unread(first));
  relay.HoldReplies();
  std::thread silent([&] { EXPECT_FALSE(infer_unread(second).ok()); });
  const auto successes = [&] {
    return server_->engine().ledger().Snapshot()["square_sum"].FinishedIn(
        engine::RequestState::kSucceeded);
  };
  while (successes() < 2) std::this_thread::yield();
  EXPECT_EQ(LeasedTrees(), 0u);
  while (!Infer(Good()).ok()) std::this_thread::yield();
  second.TryCancel();
  silent.join();
}

}  // namespace
}  // namespace cipherd::server
