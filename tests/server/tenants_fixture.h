// A daemon whose tenants are told apart: by client certificate, or by token.
#pragma once

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"
#include "tests/server/test_certificates.h"
#include "tests/server/token_signer.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server::testing {

enum class TenantsBy : uint8_t {
  kCertificate,
  kToken,
  // All by the certificate of a gateway.
  kTokenThroughGateway,
};
inline std::string NameOf(TenantsBy by) {
  switch (by) {
    case TenantsBy::kCertificate:
      return "ByCertificate";
    case TenantsBy::kToken:
      return "ByToken";
    case TenantsBy::kTokenThroughGateway:
      return "ByTokenThroughGateway";
  }
  return "";
}

class TenantsTest : public ServiceTest {
 protected:
  explicit TenantsTest(TenantsBy by = TenantsBy::kCertificate) : by_(by) {
    std::ofstream(token_keys_.path() / "k1.pem") << signer_.PublicPem();
  }

  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(server_, Server::Start(Options(), clock_));
    ASSERT_OK(server_->LoadPrograms());
  }

  ServerOptions Options() {
    ServerOptions options = TestOptions(directory_.path());
    const TestAuthority::Files files = authority_.Issue("localhost");
    options.listen.tls = {
        .certificate_file = files.certificate, .key_file = files.key, .client_ca_file = ""};
    if (by_ != TenantsBy::kToken) options.listen.tls.client_ca_file = authority_.ca_file();
    if (by_ != TenantsBy::kCertificate) {
      options.tokens = {.keys = token_keys_.path(), .issuer = "idp", .audience = "cipherd"};
    }
    return options;
  }

  // Good for an hour.
  std::string TokenOf(const std::string& name) const { return TokenOf(name, signer_, "k1"); }
  std::string TokenOf(const std::string& name, const TokenSigner& signer,
                      const std::string& kid) const {
    return signer.Sign(absl::StrCat(R"({"alg":"ES256","kid":")", kid, R"("})"),
                       absl::StrCat(R"({"iss":"idp","aud":"cipherd","sub":")", name, R"(","exp":)",
                                    absl::ToUnixSeconds(clock_.Now() + kTokenLifetime), "}"));
  }

  absl::StatusOr<std::unique_ptr<client::Client>> Connect(const std::string& name) {
    if (name.empty()) return ConnectWith({});
    return ConnectWith(CertificateOf(name), by_ == TenantsBy::kCertificate ? "" : TokenOf(name));
  }
  absl::StatusOr<std::unique_ptr<client::Client>> ConnectWith(const TestAuthority::Files& files,
                                                              const std::string& token = "") {
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
    options.bearer_token = token;
    return client::Client::Connect(options);
  }

  std::unique_ptr<v1::EvaluationService::Stub> ConnectStub(const std::string& name) {
    return v1::EvaluationService::NewStub(NewChannelOf(name));
  }
  std::shared_ptr<grpc::Channel> NewChannelOf(const std::string& name) {
    return NewChannelWith(CertificateOf(name), by_ == TenantsBy::kCertificate ? "" : TokenOf(name));
  }
  // An empty token: none. Calls on it carry it.
  std::shared_ptr<grpc::Channel> NewChannelWith(const TestAuthority::Files& files,
                                                const std::string& token) {
    const auto content = [](const std::string& path) {
      std::ifstream file(path);
      return std::string{std::istreambuf_iterator<char>(file), {}};
    };
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("localhost");
    std::shared_ptr<grpc::ChannelCredentials> credentials =
        grpc::SslCredentials({.pem_root_certs = content(authority_.ca_file()),
                              .pem_private_key = content(files.key),
                              .pem_cert_chain = content(files.certificate)});
    if (!token.empty()) {
      credentials =
          grpc::CompositeChannelCredentials(credentials, grpc::AccessTokenCredentials(token));
    }
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(server_->port()), credentials,
                                     arguments);
  }
  // What a caller of that name shows on its connection; no file where nothing is asked for.
  TestAuthority::Files CertificateOf(const std::string& name) {
    switch (by_) {
      case TenantsBy::kCertificate:
        return authority_.Issue(name);
      case TenantsBy::kToken:
        return {};
      case TenantsBy::kTokenThroughGateway:
        return authority_.Issue("gateway");
    }
    return {};
  }

  static constexpr absl::Duration kTokenLifetime = absl::Hours(1);

  const TenantsBy by_;
  base::FakeClock clock_{absl::Now()};

  ProgramDirectory certificates_, token_keys_;
  const TokenSigner signer_{TokenSigner::Kind::kP256};
  TestAuthority authority_{certificates_.path()};
};

}  // namespace cipherd::server::testing
