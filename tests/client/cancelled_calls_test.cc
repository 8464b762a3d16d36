// Calls that are cancelled while they block.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "client/cancellation.h"
#include "client/client.h"
#include "client/session.h"
#include "core/secret/random.h"
#include "tests/client/fake_service.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;

// Calls that end early with Cancelled, not with Unavailable as those that the daemon leaves do.
class CancelledCallTest : public ::testing::Test {
 protected:
  FakeService service_;
  std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
};

TEST_F(CancelledCallTest, UnaryCallsEnd) {
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(service_.ClientOptions()));
  cancellation_->Cancel();
  const CallOptions options = {.cancellation = cancellation_};
  EXPECT_THAT(client->GetServerInfo(options), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(client->ListPrograms(options), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(client->GetProgram("echo", 0, options), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(client->DropKeys(std::string(64, '0'), options),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(CancelledCallTest, ConnectingToNobodyEnds) {
  ClientOptions options = service_.ClientOptions();
  // Nobody listens there, and the client goes on trying.
  options.target = "unix-abstract:cipherd-nobody";
  options.connect_timeout = absl::Minutes(10);
  std::thread canceller([&] { cancellation_->Cancel(); });
  EXPECT_THAT(Client::Connect(options, cancellation_), StatusIs(absl::StatusCode::kCancelled));
  canceller.join();
}

TEST_F(CancelledCallTest, AnEvaluationEnds) {
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(service_.ClientOptions()));
  ASSERT_OK_AND_ASSIGN(const auto session, Session::Create(*client, "echo"));
  ASSERT_OK(session->UploadKeys());
  service_.before_evaluation = [&](grpc::ServerContext& call) {
    cancellation_->Cancel();
    while (!call.IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return absl::CancelledError("");
  };
  ASSERT_OK_AND_ASSIGN(secret::Random random, secret::Random::FromOsEntropy());
  ASSERT_OK_AND_ASSIGN(
      value::ValueTree inputs,
      session->cipher().EncryptInputs({{"x", {std::vector<double>(16, 1.0)}}}, random));
  EXPECT_THAT(session->EvaluateEncrypted(std::move(inputs), {.cancellation = cancellation_}),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(CancelledCallTest, AnUploadOfKeysEndsAndDoesNotGoOn) {
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(service_.ClientOptions()));
  ASSERT_OK_AND_ASSIGN(const auto session, Session::Create(*client, "echo"));
  const absl::Time start = absl::Now();
  EXPECT_THAT(session->UploadKeys([&](uint64_t, uint64_t) { cancellation_->Cancel(); },
                                  {.cancellation = cancellation_}),
              StatusIs(absl::StatusCode::kCancelled));
  // A break would be waited for, up to the 30 seconds of resume_timeout.
  EXPECT_LT(absl::Now() - start, absl::Seconds(25));
  EXPECT_EQ(service_.key_set_count(), 0);
  EXPECT_EQ(session->key_set_id(), "");
}

}  // namespace
}  // namespace cipherd::client
