// Certificates that clients must not accept, and ones that are renewed while the daemon serves.
#include <filesystem>
#include <list>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"
#include "tests/server/test_certificates.h"
#include "tests/testing/metrics_page.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::MetricsPage;
using ::cipherd::testing::StatusIs;
using namespace server::testing;  // NOLINT: the test's own vocabulary

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

class TlsTest : public ServiceTest {
 protected:
  void SetUp() override {
    tls_ = {.certificate_file = files_.path() / "server.pem",
            .key_file = files_.path() / "server.key"};
  }
  void TearDown() override {
    if (server_ != nullptr) {
      EXPECT_OK(server_->Shutdown());
    }
  }

  absl::Status TryStart() {
    ServerOptions options = TestOptions(directory_.path());
    options.listen.tls = tls_;
    options.metrics_address = "127.0.0.1:0";
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options, base::Clock::Real());
    if (server.ok()) server_ = *std::move(server);
    return server.status();
  }
  void StartWith(const TestAuthority::Files& files) {
    Replace(files.certificate, tls_.certificate_file);
    Replace(files.key, tls_.key_file);
    ASSERT_OK(TryStart());
  }
  // As whoever renews certificates does: written beside, and renamed.
  static void Replace(const std::string& from, const std::string& to) {
    const std::string beside = to + ".new";
    std::filesystem::copy_file(from, beside);
    std::filesystem::rename(beside, to);
  }

  absl::StatusOr<std::unique_ptr<client::Client>> ConnectTrusting(
      const TestAuthority& authority, const std::string& server_name = "localhost",
      const TestAuthority::Files& own = {}) {
    client::ClientOptions options;
    options.target = address();
    options.security_policy = ckks::SecurityPolicy::kAllowInsecure;
    options.connect_timeout = absl::Seconds(1);
    options.tls = client::TlsOptions{.ca_file = authority.ca_file(),
                                     .certificate_file = own.certificate,
                                     .private_key_file = own.key,
                                     .server_name = server_name};
    return client::Client::Connect(options);
  }
  // Until the daemon has looked at its files; gives up after a while.
  absl::Status AwaitConnect(const TestAuthority& authority, const TestAuthority::Files& own = {}) {
    absl::Status last;
    for (const absl::Time end = absl::Now() + absl::Seconds(30); absl::Now() < end;) {
      last = ConnectTrusting(authority, "localhost", own).status();
      if (last.ok()) return last;
    }
    return last;
  }
  double Expiry(const std::string& certificate) {
    return MetricsPage::Fetch(server_->metrics_port())
        .value()
        .Sum("cipherd_tls_certificate_expiry_timestamp_seconds", {{"certificate", certificate}});
  }

  TestAuthority NewAuthority() { return TestAuthority(authorities_.emplace_back().path()); }

  ProgramDirectory files_;
  std::list<ProgramDirectory> authorities_;
  TestAuthority authority_ = NewAuthority();
  TestAuthority other_authority_ = NewAuthority();
  TlsOptions tls_;
};

TEST_F(TlsTest, WhatClientsMustNotAccept) {
  StartWith(authority_.Issue("localhost"));
  EXPECT_OK(ConnectTrusting(authority_).status());
  EXPECT_THAT(ConnectTrusting(authority_, "elsewhere").status(), StatusIs(kUnavailable));
  EXPECT_THAT(ConnectTrusting(other_authority_).status(), StatusIs(kUnavailable));
}

TEST_F(TlsTest, OneThatEndsWhileItServesIsRefusedByClients) {
  StartWith(authority_.IssueWithNames("localhost", "localhost", 2));
  EXPECT_OK(ConnectTrusting(authority_).status());
  absl::SleepFor(absl::Seconds(3));
  EXPECT_THAT(ConnectTrusting(authority_).status(), StatusIs(kUnavailable));
  // And mended without a restart.
  const TestAuthority::Files renewed = authority_.Issue("localhost");
  Replace(renewed.certificate, tls_.certificate_file);
  Replace(renewed.key, tls_.key_file);
  EXPECT_OK(AwaitConnect(authority_));
}

TEST_F(TlsTest, ARenewedOneServesWhoConnectsNextAndLeavesWhoIsConnected) {
  StartWith(authority_.IssueWithNames("localhost", "localhost", 600));
  const double expiry_before = Expiry("server");
  ASSERT_OK_AND_ASSIGN(const auto connected, ConnectTrusting(authority_));
  const TestAuthority::Files renewed = other_authority_.Issue("localhost");
  Replace(renewed.certificate, tls_.certificate_file);
  Replace(renewed.key, tls_.key_file);
  EXPECT_OK(AwaitConnect(other_authority_));
  EXPECT_THAT(ConnectTrusting(authority_).status(), StatusIs(kUnavailable));
  EXPECT_OK(connected->GetServerInfo().status());
  EXPECT_GT(Expiry("server"), expiry_before + 1000);
}

TEST_F(TlsTest, ARenewedClientAuthorityLetsItsClientsInAndFormerOnesOut) {
  tls_.client_ca_file = files_.path() / "clients.pem";
  Replace(authority_.ca_file(), tls_.client_ca_file);
  StartWith(authority_.Issue("localhost"));
  const TestAuthority::Files alice = authority_.Issue("alice");
  const TestAuthority::Files bob = other_authority_.Issue("bob");
  EXPECT_OK(ConnectTrusting(authority_, "localhost", alice).status());
  EXPECT_THAT(ConnectTrusting(authority_, "localhost", bob).status(), StatusIs(kUnavailable));
  Replace(other_authority_.ca_file(), tls_.client_ca_file);
  EXPECT_OK(AwaitConnect(authority_, bob));
  EXPECT_THAT(ConnectTrusting(authority_, "localhost", alice).status(), StatusIs(kUnavailable));
}

}  // namespace
}  // namespace cipherd::server
