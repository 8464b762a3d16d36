// The binary itself: flags, port file, health, signals, and what is not in it.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "health.grpc.pb.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/served_device.h"

extern char** environ;

namespace cipherd::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace server::testing;  // NOLINT: the test's own vocabulary

// A child process whose stdout is read line by line.
class Child {
 public:
  explicit Child(std::vector<std::string> arguments) {
    int fds[2];
    if (pipe(fds) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, fds[0]);
    posix_spawn_file_actions_addclose(&actions, fds[1]);
    arguments.insert(arguments.begin(), CIPHERD_BINARY);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (posix_spawn(&pid_, CIPHERD_BINARY, &actions, nullptr, argv.data(), environ) != 0) {
      std::abort();
    }
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    out_ = fdopen(fds[0], "r");
  }
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      Wait();
    }
    fclose(out_);
  }

  std::string ReadLine() {
    char line[256] = "";
    return fgets(line, sizeof(line), out_) == nullptr ? "" : line;
  }
  void Signal(int number) { kill(pid_, number); }
  // The exit status; -1 where a signal ended it.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
};

std::string Output(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, n);
  pclose(pipe);
  return text;
}

TEST(DaemonTest, ServesUntilASignalAndLeavesInOrder) {
  const ProgramDirectory programs;
  const std::string port_file = programs.path() / "port";
  Child daemon({"--programs", programs.path(), "--listen", "127.0.0.1:0", "--metrics-listen",
                "none", "--device", cipherd::testing::ServedDevice(), "--port-file", port_file,
                "--allow-insecure-contexts", "--log-level", "error"});
  const std::string line = daemon.ReadLine();
  ASSERT_THAT(line, HasSubstr("listening on port "));
  std::string port;
  std::getline(std::ifstream(port_file) >> std::ws, port);
  EXPECT_THAT(line, HasSubstr(port));

  // Watch blocks until the daemon serves.
  const std::string address = "127.0.0.1:" + port;
  const auto health = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto watch = health->Watch(&context, {});
  grpc::health::v1::HealthCheckResponse response;
  while (response.status() != grpc::health::v1::HealthCheckResponse::SERVING) {
    ASSERT_TRUE(watch->Read(&response));
  }
  EXPECT_EQ(Child({"--probe", address}).Wait(), 0);
  EXPECT_EQ(Child({"--probe", address, "--probe-service", "nothing"}).Wait(), 1);

  daemon.Signal(SIGTERM);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  while (watch->Read(&response)) {
  }
  watch->Finish();
  EXPECT_EQ(daemon.Wait(), 0);
  EXPECT_EQ(Child({"--probe", address}).Wait(), 1);
}

TEST(DaemonTest, WhatCannotStartSaysSoAndFails) {
  const ProgramDirectory programs;
  EXPECT_EQ(Child({"--help"}).Wait(), 0);
  EXPECT_NE(Child({"--no-such-flag"}).Wait(), 0);
  // Insecure contexts are refused unless asked for.
  EXPECT_EQ(Child({"--programs", programs.path(), "--listen", "127.0.0.1:0", "--device", "cpu",
                   "--log-level", "error"})
                .Wait(),
            1);
  EXPECT_EQ(Child({"--programs", "/no/such/directory", "--device", "cpu"}).Wait(), 1);
}

TEST(DaemonTest, NothingOfTheSecretKeyLayerIsLinked) {
  const std::string symbols = Output("nm -C " CIPHERD_BINARY);
  // The scan sees this program's own symbols, or it would see nothing.
  ASSERT_THAT(symbols, HasSubstr("cipherd::engine::Engine::Submit"));
  EXPECT_THAT(symbols, Not(HasSubstr("cipherd::secret::")));
}

}  // namespace
}  // namespace cipherd::server
