// Readiness, as health checks see it.
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "health.grpc.pb.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"
#include "server/health_service.h"
#include "server/probe.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

// A daemon that listens and has loaded nothing yet.
class HealthTest : public ServiceTest {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(server_,
                         Server::Start(TestOptions(directory_.path()), base::Clock::Real()));
    stub_ = v1::EvaluationService::NewStub(NewChannel());
    health_ = Health::NewStub(NewChannel());
  }

  absl::StatusOr<HealthCheckResponse::ServingStatus> Check(const std::string& service) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const grpc::Status status = health_->Check(&context, request, &response);
    if (!status.ok()) return FromGrpcStatus(status);
    return response.status();
  }

  std::unique_ptr<Health::Stub> health_;
};

class Watch {
 public:
  Watch(Health::Stub& stub, const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    reader_ = stub.Watch(&context_, request);
  }
  ~Watch() { context_.TryCancel(); }
  // The next status; UNKNOWN at the end.
  HealthCheckResponse::ServingStatus Next() {
    HealthCheckResponse response;
    return reader_->Read(&response) ? response.status() : HealthCheckResponse::UNKNOWN;
  }
  grpc::Status Finish() { return reader_->Finish(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
};

TEST_F(HealthTest, NothingServesBeforeItsFirstVerifiedReplay) {
  for (const char* service : {"", "square_sum", "negate"}) {
    EXPECT_EQ(*Check(service), HealthCheckResponse::NOT_SERVING) << service;
  }
  EXPECT_THAT(Check("nothing"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Probe({.address = address()}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("NOT_SERVING")));

  v1::ListProgramsResponse programs;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->ListPrograms(&context, {}, &programs).ok());
  EXPECT_FALSE(programs.programs(0).ready());

  ASSERT_OK(server_->engine().LoadProgram("negate"));
  EXPECT_EQ(*Check("negate"), HealthCheckResponse::SERVING);
  EXPECT_EQ(*Check("square_sum"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(*Check(""), HealthCheckResponse::NOT_SERVING);
  ASSERT_OK(server_->engine().LoadProgram("square_sum"));
  EXPECT_EQ(*Check("square_sum"), HealthCheckResponse::SERVING);
  EXPECT_EQ(*Check(""), HealthCheckResponse::SERVING);
  EXPECT_OK(Probe({.address = address()}));
  EXPECT_OK(Probe({.address = address(), .service = "negate"}));
  EXPECT_THAT(Probe({.address = address(), .service = "nothing"}),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(HealthTest, WatchTellsEveryChangeAndTheEnd) {
  Watch daemon(*health_, ""), program(*health_, "negate"), unknown(*health_, "nothing");
  EXPECT_EQ(daemon.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(program.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(unknown.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  ASSERT_OK(server_->LoadPrograms());
  EXPECT_EQ(program.Next(), HealthCheckResponse::SERVING);
  EXPECT_EQ(daemon.Next(), HealthCheckResponse::SERVING);
  std::thread shutdown([&] { EXPECT_OK(server_->Shutdown()); });
  EXPECT_EQ(daemon.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(daemon.Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(daemon.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  shutdown.join();
}

TEST_F(HealthTest, ALameDuckIsNotServingWhateverIsLoaded) {
  ASSERT_OK(server_->engine().LoadProgram("negate"));
  Watch negate(*health_, "negate");
  EXPECT_EQ(negate.Next(), HealthCheckResponse::SERVING);
  server_->BeginLameDuck();
  EXPECT_EQ(negate.Next(), HealthCheckResponse::NOT_SERVING);
  ASSERT_OK(server_->engine().LoadProgram("square_sum"));
  ASSERT_OK(server_->ReloadPrograms());
  for (const char* service : {"", "square_sum", "negate"}) {
    EXPECT_EQ(*Check(service), HealthCheckResponse::NOT_SERVING) << service;
  }
}

TEST_F(HealthTest, WatchersAreBoundedAndNamesAreNotKept) {
  Watch long_name(*health_, std::string(kMaxHealthNameBytes + 1, 'x'));
  EXPECT_EQ(long_name.Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(long_name.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  // A connection holds few calls; several hold many. One caller has half of them.
  std::vector<std::unique_ptr<Health::Stub>> stubs;
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < kHealthWatches.max_calls_per_caller; ++i) {
    if (i % 128 == 0) stubs.push_back(Health::NewStub(NewChannel()));
    watches.push_back(std::make_unique<Watch>(*stubs.back(), ""));
    ASSERT_EQ(watches.back()->Next(), HealthCheckResponse::NOT_SERVING) << i;
  }
  Watch one_more(*health_, "");
  ASSERT_EQ(one_more.Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(one_more.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(*Check(""), HealthCheckResponse::NOT_SERVING);
  // Who leaves makes room.
  watches.resize(watches.size() / 2);
  while (true) {
    Watch again(*health_, "");
    if (again.Next() == HealthCheckResponse::NOT_SERVING) break;
  }
}

TEST_F(HealthTest, AProgramThatIsNotReadyIsUnavailable) {
  ASSERT_OK(server_->engine().LoadProgram("square_sum"));
  client::ClientOptions options;
  options.target = address();
  options.security_policy = ckks::SecurityPolicy::kAllowInsecure;
  ASSERT_OK_AND_ASSIGN(const auto client, client::Client::Connect(options));
  Party bob(client->GetProgram("negate").value(), 3);
  v1::EvaluateResponse response;
  const absl::Status status = FromGrpcStatus(
      EvaluateUnary(MakeWireRequest("negate", "", bob.Encrypt(TestSlots(1, 128))), &response));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not ready")));
  EXPECT_EQ(codec::GetErrorDetail(status)->reason(), v1::ERROR_REASON_UNAVAILABLE);
}

}  // namespace
}  // namespace cipherd::server
