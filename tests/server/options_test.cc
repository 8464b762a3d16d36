#include "server/options.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

ServerOptions Valid() {
  ServerOptions options;
  options.programs_directory = "/programs";
  return options;
}

TEST(OptionsTest, DefaultsAreValidButForTheProgramsAndStayOnThisMachine) {
  EXPECT_OK(Valid().Validate());
  EXPECT_TRUE(IsLoopback(ServerOptions{}.listen.address));
  EXPECT_FALSE(ServerOptions{}.allow_insecure_contexts);
  EXPECT_THAT(ServerOptions{}.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("programs")));
}

TEST(OptionsTest, LoopbackIsTold) {
  for (const char* local :
       {"127.0.0.1:1", "127.1.2.3:0", "localhost:80", "[::1]:5", "unix:/run/cipherd.sock"}) {
    EXPECT_TRUE(IsLoopback(local)) << local;
  }
  for (const char* remote : {"0.0.0.0:1", "[::]:1", "192.168.0.1:1", "example.com:1", "128.0.0.1:1",
                             "127.evil.example:1", "localhost.example:1"}) {
    EXPECT_FALSE(IsLoopback(remote)) << remote;
  }
}

TEST(OptionsTest, PlaintextBeyondLoopbackNeedsAnExplicitWord) {
  ServerOptions options = Valid();
  options.listen.address = "0.0.0.0:7480";
  EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                           HasSubstr("--allow-plaintext-remote")));
  options.listen.allow_plaintext_remote = true;
  EXPECT_OK(options.Validate());
  options.listen.allow_plaintext_remote = false;
  options.listen.tls = {.certificate_file = "c", .key_file = "k", .client_ca_file = ""};
  EXPECT_OK(options.Validate());
}

TEST(OptionsTest, TlsFilesBelongTogether) {
  ServerOptions options = Valid();
  options.listen.tls.certificate_file = "c";
  EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument));
  options.listen.tls = {.certificate_file = "", .key_file = "", .client_ca_file = "ca"};
  EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(OptionsTest, KeysOfTokensNeedAnIssuerAndAnAudienceAndTheyNeedKeys) {
  ServerOptions options = Valid();
  const TokenOptions good = {.keys = "/keys", .issuer = "https://idp", .audience = "cipherd"};
  options.tokens = good;
  EXPECT_OK(options.Validate());
  const auto refused = [&](void (*change)(TokenOptions&), const char* why) {
    options.tokens = good;
    change(options.tokens);
    EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused([](TokenOptions& tokens) { tokens.issuer.clear(); }, "tokens");
  refused([](TokenOptions& tokens) { tokens.audience.clear(); }, "tokens");
  // Callers would be asked for nothing.
  refused([](TokenOptions& tokens) { tokens.keys.clear(); }, "tokens.keys");
  for (const auto change : {+[](TokenOptions& tokens) { tokens.issuer = "https://idp#1"; },
                            +[](TokenOptions& tokens) { tokens.issuer = "an idp"; },
                            +[](TokenOptions& tokens) { tokens.issuer = std::string(256, 'a'); }}) {
    refused(change, "tokens.issuer");
  }
  refused([](TokenOptions& tokens) { tokens.tenant_claim.clear(); }, "tokens.tenant_claim");
  refused([](TokenOptions& tokens) { tokens.leeway = -absl::Seconds(1); }, "tokens.leeway");
  refused([](TokenOptions& tokens) { tokens.leeway = absl::Seconds(301); }, "tokens.leeway");
}

TEST(OptionsTest, AtLeastOneMessageOfTheLargestFitsItsMemory) {
  ServerOptions options = Valid();
  options.inference = {.max_payload_bytes = 64 << 20, .message_memory_bytes = 65 << 20};
  EXPECT_OK(options.Validate());
  --options.inference.message_memory_bytes;
  EXPECT_THAT(options.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("message_memory_bytes")));
  options.inference = {.max_payload_bytes = (1 << 30) + 1,
                       .message_memory_bytes = int64_t{1} << 40};
  EXPECT_THAT(options.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_payload_bytes")));
}

TEST(OptionsTest, EachGroupIsChecked) {
  const auto refuses = [](auto change) {
    ServerOptions options = Valid();
    change(options);
    EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument));
  };
  refuses([](ServerOptions& o) { o.listen.address.clear(); });
  refuses([](ServerOptions& o) { o.engine.workers = 0; });
  refuses([](ServerOptions& o) { o.transport.connections.max_connections = 0; });
  refuses([](ServerOptions& o) { o.transport.connections.max_connections_per_peer = 0; });
  refuses([](ServerOptions& o) { o.transport.calls.max_calls = 0; });
  refuses([](ServerOptions& o) { o.transport.calls.max_calls_per_caller = 0; });
  refuses([](ServerOptions& o) { o.transport.calls.max_calls_per_tenant = 0; });
  refuses([](ServerOptions& o) { o.transport.lookups.max_calls = 0; });
  refuses([](ServerOptions& o) { o.transport.handshake_timeout = absl::Milliseconds(10); });
  refuses([](ServerOptions& o) { o.transport.max_connection_idle = absl::ZeroDuration(); });
  refuses([](ServerOptions& o) { o.transport.max_health_connection_idle = absl::ZeroDuration(); });
  refuses([](ServerOptions& o) { o.engine.keys.host_budget_bytes = 0; });
  refuses([](ServerOptions& o) { o.limits.max_chunk_bytes = 1; });
  refuses([](ServerOptions& o) { o.device.pools.device_memory.slab_bytes = 0; });
  refuses([](ServerOptions& o) { o.transport.max_concurrent_streams = 0; });
  refuses([](ServerOptions& o) { o.transport.buffer_bytes = 1; });
  refuses([](ServerOptions& o) { o.transport.keepalive_interval = absl::ZeroDuration(); });
  refuses([](ServerOptions& o) { o.free_memory_interval = absl::ZeroDuration(); });
  refuses([](ServerOptions& o) { o.shutdown.drain_timeout = -absl::Seconds(1); });
}

}  // namespace
}  // namespace cipherd::server
