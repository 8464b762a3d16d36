#include "server/command_line.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;

absl::StatusOr<CommandLine> Parse(std::vector<std::string> arguments, int* code = nullptr) {
  std::vector<const char*> argv = {"cipherd"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  int exit_code = -1;
  absl::StatusOr<CommandLine> result =
      ParseCommandLine(static_cast<int>(argv.size()), argv.data(), exit_code);
  if (code != nullptr) *code = exit_code;
  return result;
}

TEST(CommandLineTest, FlagsReachTheirOptions) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line, Parse({"--programs=/p",
                                                      "--listen=127.0.0.1:0",
                                                      "--port-file=/tmp/port",
                                                      "--device=cuda:1",
                                                      "--workers=3",
                                                      "--worker-spin=0.002",
                                                      "--instances=4",
                                                      "--queue-capacity=5",
                                                      "--constant-memory=2GiB",
                                                      "--key-device-memory=512MiB",
                                                      "--max-chunk=1MiB",
                                                      "--max-infer=64MiB",
                                                      "--infer-memory=2GiB",
                                                      "--drain-timeout=1.5",
                                                      "--lame-duck=7",
                                                      "--health-listen=127.0.0.1:1",
                                                      "--allow-insecure-contexts",
                                                      "--metrics-listen=none",
                                                      "--log-level=debug",
                                                      "--tls-cert=c",
                                                      "--tls-key=k",
                                                      "--tls-client-ca=ca",
                                                      "--allow-plaintext-remote"}));
  const ServerOptions& options = line.options;
  EXPECT_EQ(options.programs_directory, "/p");
  EXPECT_EQ(options.listen.address, "127.0.0.1:0");
  EXPECT_EQ(options.listen.port_file, "/tmp/port");
  EXPECT_EQ(options.listen.tls.client_ca_file, "ca");
  EXPECT_TRUE(options.listen.allow_plaintext_remote);
  EXPECT_EQ(options.device.spec, "cuda:1");
  EXPECT_EQ(options.engine.workers, 3);
  EXPECT_EQ(options.engine.spin, absl::Milliseconds(2));
  EXPECT_EQ(options.engine.instances, 4);
  EXPECT_EQ(options.engine.queue_capacity, 5);
  EXPECT_EQ(options.engine.constant_memory_bytes, int64_t{2} << 30);
  EXPECT_EQ(options.engine.keys.device_budget_bytes, int64_t{512} << 20);
  EXPECT_EQ(options.limits.max_chunk_bytes, uint64_t{1} << 20);
  EXPECT_EQ(options.inference.max_payload_bytes, uint64_t{64} << 20);
  EXPECT_EQ(options.inference.message_memory_bytes, int64_t{2} << 30);
  EXPECT_EQ(options.shutdown.drain_timeout, absl::Seconds(1.5));
  EXPECT_EQ(options.shutdown.lame_duck, absl::Seconds(7));
  EXPECT_TRUE(options.allow_insecure_contexts);
  EXPECT_EQ(options.metrics_address, "");
  EXPECT_EQ(options.health_address, "127.0.0.1:1");
  EXPECT_EQ(line.log_level, "debug");
  EXPECT_FALSE(line.probe.has_value());
}

TEST(CommandLineTest, FlagsOfTokensReachTheirOptions) {
  ASSERT_OK_AND_ASSIGN(
      const CommandLine line,
      Parse({"--token-keys=/keys", "--token-issuer=https://idp", "--token-audience=cipherd",
             "--token-tenant-claim=org", "--token-leeway=5"}));
  const TokenOptions& tokens = line.options.tokens;
  EXPECT_EQ(tokens.keys, "/keys");
  EXPECT_EQ(tokens.issuer, "https://idp");
  EXPECT_EQ(tokens.audience, "cipherd");
  EXPECT_EQ(tokens.tenant_claim, "org");
  EXPECT_EQ(tokens.leeway, absl::Seconds(5));
  EXPECT_THAT(Parse({"--token-issuer=https://idp"}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(CommandLineTest, NothingIsChangedByNothing) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line, Parse({}));
  EXPECT_EQ(line.options.listen.address, ServerOptions{}.listen.address);
  EXPECT_EQ(line.options.limits.max_chunk_bytes, ServerOptions{}.limits.max_chunk_bytes);
  EXPECT_EQ(line.options.shutdown.drain_timeout, ServerOptions{}.shutdown.drain_timeout);
}

TEST(CommandLineTest, AConfigFileIsReadAndFlagsWin) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("cipherd-config-" + std::to_string(getpid()) + ".ini");
  std::ofstream(path) << "workers = 7\ninstances = 6\nprograms = \"/from/file\"\n"
                         "key-host-memory = 2GiB\nallow-insecure-contexts = true\n";
  ASSERT_OK_AND_ASSIGN(const CommandLine line,
                       Parse({"--config=" + path.string(), "--instances=2"}));
  std::filesystem::remove(path);
  EXPECT_EQ(line.options.engine.workers, 7);
  EXPECT_EQ(line.options.engine.instances, 2);
  EXPECT_EQ(line.options.programs_directory, "/from/file");
  EXPECT_EQ(line.options.engine.keys.host_budget_bytes, int64_t{2} << 30);
  EXPECT_TRUE(line.options.allow_insecure_contexts);
}

TEST(CommandLineTest, AProbeIsAskedFor) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line,
                       Parse({"--probe=127.0.0.1:7480", "--probe-service=mlp", "--probe-ca=ca",
                              "--probe-name=daemon", "--probe-cert=c", "--probe-key=k"}));
  ASSERT_TRUE(line.probe.has_value());
  EXPECT_EQ(line.probe->address, "127.0.0.1:7480");
  EXPECT_EQ(line.probe->service, "mlp");
  EXPECT_EQ(line.probe->ca_file, "ca");
  EXPECT_EQ(line.probe->server_name, "daemon");
  EXPECT_EQ(line.probe->certificate_file, "c");
  EXPECT_EQ(line.probe->key_file, "k");
  // A certificate without its key, or a name with nothing to check it by, is a mistake.
  EXPECT_FALSE(Parse({"--probe=a:1", "--probe-ca=ca", "--probe-cert=c"}).ok());
  EXPECT_FALSE(Parse({"--probe=a:1", "--probe-name=daemon"}).ok());
  EXPECT_FALSE(Parse({"--probe-service=mlp"}).ok());
}

TEST(CommandLineTest, HelpEndsWithSuccessAndNonsenseWithout) {
  int code = -1;
  EXPECT_THAT(Parse({"--help"}, &code), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(code, 0);
  EXPECT_THAT(Parse({"--version"}, &code), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(code, 0);
  for (const char* wrong : {"--no-such-flag", "--workers=many", "--log-level=loud",
                            "--key-host-memory=12parsecs", "--config=/no/such/file"}) {
    EXPECT_THAT(Parse({wrong}, &code), StatusIs(absl::StatusCode::kInvalidArgument)) << wrong;
    EXPECT_NE(code, 0) << wrong;
  }
}

}  // namespace
}  // namespace cipherd::server
