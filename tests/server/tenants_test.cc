// Tenants by client certificate: each sees its own key sets only.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"
#include "tests/server/test_certificates.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class TenantsTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServerOptions options = TestOptions(directory_.path());
    const TestAuthority::Files files = authority_.Issue("localhost");
    options.listen.tls = {.certificate_file = files.certificate,
                          .key_file = files.key,
                          .client_ca_file = authority_.ca_file()};
    ASSERT_OK_AND_ASSIGN(server_, Server::Start(options, base::Clock::Real()));
    ASSERT_OK(server_->LoadPrograms());
  }

  absl::StatusOr<std::unique_ptr<client::Client>> Connect(const std::string& name) {
    return ConnectWith(name.empty() ? TestAuthority::Files{} : authority_.Issue(name));
  }
  absl::StatusOr<std::unique_ptr<client::Client>> ConnectWith(const TestAuthority::Files& files) {
    client::ClientOptions options;
    options.target = "127.0.0.1:" + std::to_string(server_->port());
    options.security_policy = ckks::SecurityPolicy::kAllowInsecure;
    options.connect_timeout = files.key.empty() ? absl::Seconds(1) : absl::Seconds(30);
    options.tls = client::TlsOptions{.ca_file = authority_.ca_file(),
                                     .certificate_file = "",
                                     .private_key_file = "",
                                     .server_name = "localhost"};
    options.tls->certificate_file = files.certificate;
    options.tls->private_key_file = files.key;
    return client::Client::Connect(options);
  }

  ProgramDirectory certificates_;
  TestAuthority authority_{certificates_.path()};
};

TEST_F(TenantsTest, AKeySetIsUnknownToOtherTenants) {
  ASSERT_OK_AND_ASSIGN(const auto alice_client, Connect("alice"));
  ASSERT_OK_AND_ASSIGN(const auto mallory_client, Connect("mallory"));
  ASSERT_OK_AND_ASSIGN(const client::ProgramPtr program, alice_client->GetProgram("square_sum"));
  Party alice(program, 1);
  ASSERT_OK_AND_ASSIGN(const std::string keys, alice.UploadKeys(*alice_client));
  const std::vector<double> x = TestSlots(1, 128);
  const client::EvaluationRequest request = {
      .program = program, .key_set_id = keys, .request_id = "", .inputs = alice.Encrypt(x)};

  const absl::Status stolen = mallory_client->Evaluate(request).status();
  client::EvaluationRequest guessed = request;
  guessed.key_set_id = std::string(64, 'a');
  const absl::Status unknown = mallory_client->Evaluate(guessed).status();
  EXPECT_THAT(stolen, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(client::ReasonOf(stolen), v1::ERROR_REASON_UNKNOWN_KEY_SET);
  EXPECT_EQ(client::ReasonOf(unknown), client::ReasonOf(stolen));
  EXPECT_THAT(mallory_client->DropKeys(keys), StatusIs(absl::StatusCode::kNotFound));

  ASSERT_OK_AND_ASSIGN(const client::EvaluationResult result, alice_client->Evaluate(request));
  EXPECT_LT(MaxDifference(alice.Decrypt(result.outputs), SquareSum(x)), kTolerance);

  // The name is the tenant, whatever the connection.
  ASSERT_OK_AND_ASSIGN(const auto again, Connect("alice"));
  EXPECT_OK(again->Evaluate(request));
}

TEST_F(TenantsTest, ACommonNameIsNoAlternativeName) {
  ASSERT_OK_AND_ASSIGN(const auto alice_client, Connect("alice"));
  ASSERT_OK_AND_ASSIGN(const client::ProgramPtr program, alice_client->GetProgram("square_sum"));
  Party alice(program, 1);
  ASSERT_OK_AND_ASSIGN(const std::string keys, alice.UploadKeys(*alice_client));
  const client::EvaluationRequest request = {.program = program,
                                             .key_set_id = keys,
                                             .request_id = "",
                                             .inputs = alice.Encrypt(TestSlots(1, 128))};
  // The same name in the other place, alone or beside another's.
  for (const char* alternative_name : {"", "mallory"}) {
    ASSERT_OK_AND_ASSIGN(const auto other,
                         ConnectWith(authority_.IssueWithNames("alice", alternative_name)));
    EXPECT_THAT(other->Evaluate(request), StatusIs(absl::StatusCode::kNotFound));
  }
  // The alternative name alone decides.
  ASSERT_OK_AND_ASSIGN(const auto same,
                       ConnectWith(authority_.IssueWithNames("somebody", "alice")));
  EXPECT_OK(same->Evaluate(request));
}

TEST_F(TenantsTest, ACallerWithoutCertificateIsTurnedAway) {
  EXPECT_THAT(Connect(""), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace cipherd::server
