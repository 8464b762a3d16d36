// A daemon whose tenants are told apart by client certificate.
#pragma once

#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"
#include "tests/server/test_certificates.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server::testing {

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

  std::unique_ptr<v1::EvaluationService::Stub> ConnectStub(const std::string& name) {
    return v1::EvaluationService::NewStub(NewChannelOf(name));
  }
  std::shared_ptr<grpc::Channel> NewChannelOf(const std::string& name) {
    const auto content = [](const std::string& path) {
      std::ifstream file(path);
      return std::string{std::istreambuf_iterator<char>(file), {}};
    };
    const TestAuthority::Files files = authority_.Issue(name);
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("localhost");
    return grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(server_->port()),
        grpc::SslCredentials({.pem_root_certs = content(authority_.ca_file()),
                              .pem_private_key = content(files.key),
                              .pem_cert_chain = content(files.certificate)}),
        arguments);
  }

  ProgramDirectory certificates_;
  TestAuthority authority_{certificates_.path()};
};

}  // namespace cipherd::server::testing
