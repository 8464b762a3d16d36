// What a client is told who asks for more than its quotas or the daemon's limits.
#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class OverloadTest : public ServiceTest {
 protected:
  void SetUp() override {}
  void StartWith(const std::function<void(ServerOptions&)>& change) {
    ServerOptions options = TestOptions(directory_.path());
    change(options);
    Start(options);
  }
  absl::Status Evaluate() {
    v1::EvaluateResponse response;
    return FromGrpcStatus(EvaluateUnary(
        MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128))),
        &response));
  }
};

TEST_F(OverloadTest, ATenantAboveItsRateLearnsWhenToComeAgain) {
  StartWith([](ServerOptions& options) {
    options.engine.quotas.requests_per_second = 0.5;
    options.engine.quotas.request_burst = 2;
  });
  EXPECT_OK(Evaluate());
  EXPECT_OK(Evaluate());
  const absl::Status refused = Evaluate();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("quota")));
  EXPECT_EQ(client::ReasonOf(refused), v1::ERROR_REASON_OVERLOADED);
  ASSERT_TRUE(client::RetryDelayOf(refused).has_value());
  EXPECT_GT(*client::RetryDelayOf(refused), absl::ZeroDuration());
  EXPECT_LE(*client::RetryDelayOf(refused), absl::Seconds(2));
}

// Read as google.rpc.Status by field number, the way any gRPC library does.
TEST_F(OverloadTest, TheDelayTravelsAsTheStandardMessage) {
  StartWith([](ServerOptions& options) {
    options.engine.quotas.requests_per_second = 0.1;
    options.engine.quotas.request_burst = 1;
  });
  EXPECT_OK(Evaluate());
  v1::EvaluateResponse response;
  const grpc::Status refused = EvaluateUnary(
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128))), &response);
  google::protobuf::UnknownFieldSet status;
  ASSERT_TRUE(status.ParseFromString(refused.error_details()));
  int retry_infos = 0;
  for (int i = 0; i < status.field_count(); ++i) {
    if (status.field(i).number() == 1) {
      EXPECT_EQ(status.field(i).varint(), 8u);  // RESOURCE_EXHAUSTED
    }
    if (status.field(i).number() != 3) continue;  // details: Any
    google::protobuf::UnknownFieldSet any;
    ASSERT_TRUE(any.ParseFromString(status.field(i).length_delimited()));
    ASSERT_EQ(any.field(0).number(), 1);
    if (any.field(0).length_delimited() != "type.googleapis.com/google.rpc.RetryInfo") continue;
    ++retry_infos;
    google::protobuf::UnknownFieldSet retry_info, duration;
    ASSERT_TRUE(retry_info.ParseFromString(any.field(1).length_delimited()));
    ASSERT_EQ(retry_info.field(0).number(), 1);  // retry_delay: Duration
    ASSERT_TRUE(duration.ParseFromString(retry_info.field(0).length_delimited()));
    ASSERT_EQ(duration.field(0).number(), 1);  // seconds
    EXPECT_LE(duration.field(0).varint(), 10u);
    EXPECT_GE(duration.field(0).varint(), 5u);
  }
  EXPECT_EQ(retry_infos, 1);
}

TEST_F(OverloadTest, KeysAboveTheTenantsQuotaAreALimitThatTheClientReads) {
  StartWith([](ServerOptions& options) {
    options.engine.keys.tenant_budget_bytes = 1 << 20;
    options.engine.keys.device_budget_bytes = 2 << 20;
  });
  EXPECT_EQ(client_->server_info().limits().max_key_set_bytes(), uint64_t{1} << 20);
}

TEST_F(OverloadTest, TheStatedKeyLimitIsThatOfTheSmallestTier) {
  const auto limit = [&](auto change) {
    ServerOptions options = TestOptions(directory_.path());
    change(options);
    return options.EffectiveLimits().max_key_set_bytes;
  };
  EXPECT_EQ(limit([](ServerOptions& o) { o.limits.max_key_set_bytes = 5; }), 5u);
  EXPECT_EQ(limit([](ServerOptions& o) { o.engine.keys.host_budget_bytes = 7; }), 7u);
  EXPECT_EQ(limit([](ServerOptions& o) { o.engine.keys.device_budget_bytes = 6; }), 6u);
  EXPECT_EQ(limit([](ServerOptions& o) { o.engine.keys.tenant_budget_bytes = 9; }), 9u);
  EXPECT_EQ(limit([](ServerOptions& o) {
              o.engine.keys.directory = "/keys";
              o.engine.keys.file_budget_bytes = 4;
            }),
            4u);
}

TEST_F(OverloadTest, AProgramWhoseKeysCannotFitIsNotServed) {
  ServerOptions options = TestOptions(directory_.path());
  options.engine.keys.device_budget_bytes = 1000;
  EXPECT_THAT(Server::Start(options, base::Clock::Real()).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("square_sum")));
}

TEST_F(OverloadTest, CallsBeyondTheLimitAreRefusedUntilOthersEnd) {
  StartWith([](ServerOptions& options) { options.transport.calls.max_calls = 2; });
  // Streams that have sent nothing hold a call, too.
  grpc::ClientContext contexts[2];
  std::unique_ptr<grpc::ClientReaderWriter<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse>>
      streams[2];
  for (int i = 0; i < 2; ++i) streams[i] = stub_->EvaluateStream(&contexts[i]);
  absl::Status refused;
  while (refused.ok()) refused = Evaluate();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2 calls")));
  EXPECT_TRUE(client::RetryDelayOf(refused).has_value());
  for (int i = 0; i < 2; ++i) {
    contexts[i].TryCancel();
    streams[i]->Finish();
  }
  while (!Evaluate().ok()) {
  }
}

}  // namespace
}  // namespace cipherd::server
