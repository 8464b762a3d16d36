// A daemon whose tenants have tokens: who is asked for one, how one is sent, and where none goes.
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "health.grpc.pb.h"
#include "proto/grpc_status/grpc_status.h"
#include "server/logging.h"
#include "tests/server/raw_call.h"
#include "tests/server/tenants_fixture.h"
#include "tests/testing/metrics_page.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::MetricsPage;
using ::cipherd::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class TokensTest : public TenantsTest {
 protected:
  TokensTest() : TenantsTest(TenantsBy::kToken) {}

  using Metadata = std::vector<std::string>;
  // Of a call with these authorizations.
  absl::Status ListPrograms(const Metadata& authorizations) {
    grpc::ClientContext context;
    for (const std::string& text : authorizations) context.AddMetadata("authorization", text);
    v1::ListProgramsResponse response;
    return FromGrpcStatus(v1::EvaluationService::NewStub(NewChannelWith({}, ""))
                              ->ListPrograms(&context, {}, &response));
  }
  absl::Status ListProgramsAs(const std::string& token) {
    return ListPrograms({"Bearer " + token});
  }
  // Whole or not at all.
  void PutKey(const std::string& kid, const std::string& pem) {
    const std::filesystem::path partial = token_keys_.path() / ".partial";
    std::ofstream(partial) << pem;
    std::filesystem::rename(partial, token_keys_.path() / (kid + ".pem"));
  }
  double KeysInForce() {
    return MetricsPage::Parse(server_->metrics().Text())
        .value()
        .Sum("cipherd_token_keys_last_reload_successful");
  }
  // Asks again and again, while the daemon looks at its files once a second.
  static bool Becomes(const std::function<bool()>& is_so) {
    const absl::Time give_up = absl::Now() + absl::Seconds(60);
    while (!is_so()) {
      if (absl::Now() > give_up) return false;
    }
    return true;
  }
};

TEST_F(TokensTest, TheTokenIsTheTenantWhateverItsConnection) {
  ASSERT_OK_AND_ASSIGN(const auto alice_client, Connect("alice"));
  Party alice(alice_client->GetProgram("square_sum").value(), 1);
  ASSERT_OK_AND_ASSIGN(const std::string keys, alice.UploadKeys(*alice_client));
  const client::EvaluationRequest request = {
      .program = alice_client->GetProgram("square_sum").value(),
      .key_set_id = keys,
      .request_id = "",
      .inputs = alice.Encrypt(TestSlots(1, 128))};
  // Another token of Alice's.
  clock_.Advance(absl::Seconds(1));
  ASSERT_OK_AND_ASSIGN(const auto again, Connect("alice"));
  EXPECT_OK(again->Evaluate(request));
  ASSERT_OK_AND_ASSIGN(const auto mallory_client, Connect("mallory"));
  EXPECT_THAT(mallory_client->Evaluate(request), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(mallory_client->DropKeys(keys), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_OK(again->DropKeys(keys));
}

TEST_F(TokensTest, AClientWithoutAGoodTokenIsToldAtOnce) {
  EXPECT_THAT(Connect(""), StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("got none")));
  EXPECT_THAT(ConnectWith({}, "no-token"),
              StatusIs(absl::StatusCode::kUnauthenticated, Not(HasSubstr("no-token"))));
}

TEST_F(TokensTest, OneBearerIsAskedFor) {
  const std::string token = TokenOf("alice");
  EXPECT_OK(ListPrograms({"Bearer " + token}));
  EXPECT_OK(ListPrograms({"bearer " + token}));
  const Metadata refused[] = {{},
                              {""},
                              {"Bearer"},
                              {"Bearer "},
                              {token},
                              {"Basic " + token},
                              {"Bearer~" + token},
                              {"Bearer  " + token},
                              {"Bearer " + token, "Bearer " + token},
                              {"Bearer " + token, "Bearer " + TokenOf("bob")}};
  for (const Metadata& metadata : refused) {
    EXPECT_THAT(ListPrograms(metadata),
                StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("authorization: ")))
        << ::testing::PrintToString(metadata);
  }
}

TEST_F(TokensTest, WhoAsksForHealthOrReflectionNeedsNone) {
  const auto channel = NewChannelWith({}, "");
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckResponse response;
  EXPECT_TRUE(grpc::health::v1::Health::NewStub(channel)->Check(&context, {}, &response).ok());
  EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  // Field 7, list_services, an empty string.
  EXPECT_TRUE(SendRaw(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                      {std::string("\x3a\x00", 2)})
                  .ok());
}

// Who administers the daemon has its files and signals: there is no call for it that a token could
// reach.
TEST_F(TokensTest, ThereIsNoCallBeyondThoseOfTenantsHealthAndReflection) {
  RawCall call(NewChannelWith({}, ""),
               "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  call.Write(std::string("\x3a\x00", 2));
  std::vector<std::string> responses;
  ASSERT_TRUE(call.Finish(&responses).ok());
  ASSERT_EQ(responses.size(), 1u);
  // Each name is the one field of a message of its own: tag, length, text.
  std::set<std::string> services;
  for (size_t at = responses[0].find('\n'); at != std::string::npos && at + 1 < responses[0].size();
       at = responses[0].find('\n', at + 1)) {
    const auto size = static_cast<uint8_t>(responses[0][at + 1]);
    const std::string name = responses[0].substr(at + 2, size);
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.") ==
            name.npos &&
        name.size() == size && name.find('.') != name.npos) {
      services.insert(name);
    }
  }
  EXPECT_THAT(services,
              ::testing::ElementsAre("cipherd.v1.EvaluationService", "grpc.health.v1.Health",
                                     "grpc.reflection.v1alpha.ServerReflection",
                                     "inference.GRPCInferenceService"));
}

TEST_F(TokensTest, ACallThatHasBegunOutlivesItsToken) {
  ASSERT_OK_AND_ASSIGN(const auto client, Connect("alice"));
  Party alice(client->GetProgram("square_sum").value(), 1);
  ASSERT_OK_AND_ASSIGN(const std::string keys, alice.UploadKeys(*client));
  const WireRequest request = MakeWireRequest("square_sum", keys, alice.Encrypt(TestSlots(1, 128)));
  v1::EvaluateStreamRequest header, chunk;
  *header.mutable_header() = request.header;
  chunk.set_chunk(request.payload);
  const auto channel = NewChannelOf("alice");
  RawCall call(channel, "/cipherd.v1.EvaluationService/EvaluateStream");
  ASSERT_TRUE(call.Write(header.SerializeAsString()));
  // Which has been received once its request is counted.
  ASSERT_TRUE(Becomes([&] {
    return MetricsPage::Parse(server_->metrics().Text()).value().Sum("cipherd_requests_in_flight") >
           0;
  }));
  clock_.Advance(kTokenLifetime + absl::Minutes(1));
  ASSERT_TRUE(call.Write(chunk.SerializeAsString()));
  const grpc::Status status = call.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(SendRaw(channel, "/cipherd.v1.EvaluationService/ListPrograms", {""}).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

// All tests' clients have one address, as those behind a gateway.
TEST_F(TokensTest, ATenantLeavesPlacesToOthersOfItsAddress) {
  ServerOptions options = Options();
  options.transport.calls.max_calls_per_tenant = 2;
  options.transport.lookups.max_calls_per_tenant = 2;
  server_.reset();
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(options, clock_));
  ASSERT_OK(server_->LoadPrograms());
  const auto alice = NewChannelOf("alice");
  const auto bob = NewChannelOf("bob");
  for (const auto& [method, kind] :
       {std::pair("/cipherd.v1.EvaluationService/EvaluateStream", "work"),
        std::pair("/cipherd.v1.EvaluationService/ListPrograms", "lookup")}) {
    SCOPED_TRACE(method);
    const auto under_way = [&, kind = kind] {
      return MetricsPage::Parse(server_->metrics().Text())
          .value()
          .Sum("cipherd_calls_in_flight", {{"kind", kind}});
    };
    {
      // Which say nothing.
      RawCall first(alice, method);
      RawCall second(alice, method);
      ASSERT_TRUE(Becomes([&] { return under_way() == 2; }));
      const grpc::Status refused = SendRaw(alice, method, {""});
      EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
      EXPECT_THAT(refused.error_message(), HasSubstr("the tenant has 2 calls under way"));
      EXPECT_NE(SendRaw(bob, method, {""}).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    }
    ASSERT_TRUE(Becomes([&] { return under_way() == 0; }));
    EXPECT_NE(SendRaw(alice, method, {""}).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
}

TEST_F(TokensTest, KeysRotateWithoutARestart) {
  const TokenSigner next(TokenSigner::Kind::kP256);
  const std::string before = TokenOf("alice"), after = TokenOf("alice", next, "k2");
  EXPECT_THAT(ListProgramsAs(after), StatusIs(absl::StatusCode::kUnauthenticated));
  PutKey("k2", next.PublicPem());
  EXPECT_TRUE(Becomes([&] { return ListProgramsAs(after).ok(); }));
  EXPECT_OK(ListProgramsAs(before));
  std::filesystem::remove(token_keys_.path() / "k1.pem");
  EXPECT_TRUE(Becomes([&] { return absl::IsUnauthenticated(ListProgramsAs(before)); }));
  EXPECT_OK(ListProgramsAs(after));
}

TEST_F(TokensTest, AKeyThatIsNoneShowsInTheMetricsAndChangesNothing) {
  EXPECT_EQ(KeysInForce(), 1);
  PutKey("k1", "damaged");
  EXPECT_TRUE(Becomes([&] { return KeysInForce() == 0; }));
  EXPECT_OK(ListProgramsAs(TokenOf("alice")));
  PutKey("k1", signer_.PublicPem());
  EXPECT_TRUE(Becomes([&] { return KeysInForce() == 1; }));
}

TEST_F(TokensTest, WhatIsWrongWithTheKeysAtTheStartEndsIt) {
  ServerOptions options = Options();
  options.tokens.keys = "/no/such/keys";
  EXPECT_THAT(Server::Start(options, clock_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/keys")));
}

TEST_F(TokensTest, NoTokenGoesIntoLogOrMetrics) {
  std::ostringstream log;
  SetUpLoggingTo(log, "trace", LogFormat::kJson);
  const TokenSigner stranger(TokenSigner::Kind::kP256);
  std::vector<std::string> tokens = {TokenOf("alice"), TokenOf("mallory", stranger, "k1"),
                                     "a-word-that-is-no-token",
                                     "e30gICAgICAg.e30gICAgICAh.e30gICAgICAi"};
  for (const std::string& token : tokens) {
    const auto channel = NewChannelWith({}, token);
    for (const char* method : {"GetProgram", "PutKeys", "DropKeys", "Evaluate", "EvaluateStream"}) {
      SendRaw(channel, std::string("/cipherd.v1.EvaluationService/") + method, {"\xff"});
    }
    SendRaw(channel, "/inference.GRPCInferenceService/ModelInfer", {"\xff"});
  }
  const std::string metrics = server_->metrics().Text();
  // The last lines are written when the calls' ends have been told.
  server_.reset();
  const std::string text = log.str();
  SetUpLogging("info", LogFormat::kLogfmt);
  EXPECT_THAT(text, AllOf(HasSubstr("UNAUTHENTICATED"), HasSubstr("authorization: ")));
  for (const std::string& token : tokens) {
    for (const absl::string_view part : absl::StrSplit(token, '.')) {
      EXPECT_THAT(text + metrics, Not(HasSubstr(std::string(part))));
    }
  }
}

}  // namespace
}  // namespace cipherd::server
