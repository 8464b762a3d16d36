#include "client/client_options.h"

#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ClientOptionsTest, LocalTargetsAreKnown) {
  for (const char* target :
       {"localhost:1", "127.0.0.1:50051", "127.8.0.1:1", "[::1]:50051", "dns:///localhost:1",
        "ipv4:127.0.0.1:5", "unix:/run/cipherd.sock", "unix-abstract:cipherd"}) {
    EXPECT_TRUE(IsLocalTarget(target)) << target;
  }
}

TEST(ClientOptionsTest, NamesThatOnlyLookLocalAreRemote) {
  for (const char* target :
       {"127.evil.example:1", "localhost.example:1", "10.0.0.1:1", "example.org:443",
        "ipv4:127.0.0.1:5,10.0.0.1:5", "localhost", "[::2]:1", "127.0.0.1.example:1"}) {
    EXPECT_FALSE(IsLocalTarget(target)) << target;
  }
}

TEST(ClientOptionsTest, PlainTextToARemoteTargetNeedsTheFlag) {
  EXPECT_THAT(ClientOptions{.target = "127.0.0.1"}.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("host:port")));
  ClientOptions options{.target = "example.org:443"};
  EXPECT_THAT(options.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("use TLS")));
  options.allow_plain_text_to_remote = true;
  EXPECT_OK(options.Validate());
  options.allow_plain_text_to_remote = false;
  options.tls.emplace();
  EXPECT_OK(options.Validate());
}

TEST(ClientOptionsTest, HalfAClientCertificateIsRefused) {
  ClientOptions options{.target = "example.org:443"};
  options.tls = TlsOptions{.certificate_file = "client.pem"};
  EXPECT_THAT(options.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("private_key_file")));
}

TEST(ClientOptionsTest, EmptyTargetIsRefused) {
  EXPECT_THAT(ClientOptions{}.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("target")));
}

}  // namespace
}  // namespace cipherd::client
