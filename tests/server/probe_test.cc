// What `cipherd --probe` asks, in the clear and by TLS, and what it says.
#include "server/probe.h"

#include <cstdlib>
#include <string>

#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/service_fixture.h"
#include "tests/server/test_certificates.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class ProbeTest : public ServiceTest {
 protected:
  void SetUp() override {}

  // With a certificate for "daemon", a port for health alone, and everything loaded.
  void StartWithTls(bool demands_certificates) {
    const TestAuthority::Files files = authority_.Issue("daemon");
    ServerOptions options = TestOptions(directory_.path());
    options.listen.tls = {
        .certificate_file = files.certificate,
        .key_file = files.key,
        .client_ca_file = demands_certificates ? authority_.ca_file() : std::string()};
    options.health_address = "127.0.0.1:0";
    ASSERT_OK_AND_ASSIGN(server_, Server::Start(options, base::Clock::Real()));
    ASSERT_OK(server_->LoadPrograms());
  }

  std::string health_address() const {
    return "127.0.0.1:" + std::to_string(server_->health_port());
  }

  ProgramDirectory certificates_;
  TestAuthority authority_{certificates_.path()};
};

TEST_F(ProbeTest, TlsIsCheckedAgainstTheCaAndTheName) {
  StartWithTls(/*demands_certificates=*/false);
  ProbeOptions probe = {
      .address = address(), .ca_file = authority_.ca_file(), .server_name = "daemon"};
  EXPECT_OK(Probe(probe));
  probe.server_name = "another";
  EXPECT_THAT(Probe(probe), StatusIs(absl::StatusCode::kUnavailable, StartsWith(address())));
  probe.server_name.clear();
  EXPECT_THAT(Probe(probe), StatusIs(absl::StatusCode::kUnavailable));
  const ProgramDirectory elsewhere;
  const TestAuthority stranger(elsewhere.path());
  EXPECT_THAT(Probe({.address = address(), .ca_file = stranger.ca_file(), .server_name = "daemon"}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Probe({.address = address()}), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ProbeTest, AnOwnCertificateIsShownWhereOneIsDemanded) {
  StartWithTls(/*demands_certificates=*/true);
  const TestAuthority::Files own = authority_.Issue("prober");
  ProbeOptions probe = {
      .address = address(), .ca_file = authority_.ca_file(), .server_name = "daemon"};
  EXPECT_THAT(Probe(probe), StatusIs(absl::StatusCode::kUnavailable));
  probe.certificate_file = own.certificate;
  probe.key_file = own.key;
  EXPECT_OK(Probe(probe));
  probe.key_file = "/no/such/file";
  EXPECT_THAT(Probe(probe), StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/file")));
}

TEST_F(ProbeTest, ThePortOfHealthTakesNoCertificatesAndHasNothingElse) {
  StartWithTls(/*demands_certificates=*/true);
  EXPECT_OK(Probe({.address = health_address()}));
  EXPECT_OK(Probe({.address = health_address(), .service = "negate"}));
  const auto channel = grpc::CreateChannel(health_address(), grpc::InsecureChannelCredentials());
  const auto service = v1::EvaluationService::NewStub(channel);
  v1::ListProgramsResponse programs;
  grpc::ClientContext context;
  EXPECT_EQ(service->ListPrograms(&context, {}, &programs).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  server_->BeginLameDuck();
  EXPECT_THAT(Probe({.address = health_address()}),
              StatusIs(absl::StatusCode::kFailedPrecondition, health_address() + ": NOT_SERVING"));
  ASSERT_OK(server_->Shutdown());
  EXPECT_THAT(Probe({.address = health_address()}), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ProbeTest, ATakenPortOfHealthIsAnError) {
  StartWithTls(/*demands_certificates=*/false);
  ServerOptions options = TestOptions(directory_.path());
  options.health_address = health_address();
  EXPECT_THAT(Server::Start(options, base::Clock::Real()).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(health_address())));
}

TEST_F(ProbeTest, AProxyInTheEnvironmentIsNotAsked) {
  StartWithTls(/*demands_certificates=*/false);
  // Nobody answers there.
  setenv("http_proxy", "http://127.0.0.1:1", /*overwrite=*/1);
  EXPECT_OK(Probe({.address = health_address()}));
  unsetenv("http_proxy");
}

TEST_F(ProbeTest, MessagesAreOneLine) {
  for (const std::string address : {"127.0.0.1:1", "unix:/no/such/socket"}) {
    const absl::Status status = Probe({.address = address});
    EXPECT_FALSE(status.ok()) << address;
    EXPECT_THAT(std::string(status.message()), AllOf(StartsWith(address), Not(HasSubstr("\n"))));
  }
}

}  // namespace
}  // namespace cipherd::server
