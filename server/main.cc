// cipherd: parses its flags, starts the daemon, and waits for a signal to drain it.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/base/allocator_policy.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "server/command_line.h"
#include "server/logging.h"
#include "server/probe.h"
#include "server/server.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

// SIGTERM, SIGINT and SIGHUP, blocked in every thread, for ServeUntilTold to fetch. Before any
// thread starts.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Looks at the programs' directory again at each SIGHUP; returns at one of the others.
void ServeUntilTold(const sigset_t& signals, Server& server) {
  int number = 0;
  while (sigwait(&signals, &number) == 0 && number == SIGHUP) {
    spdlog::info("received SIGHUP: looking at the programs again");
    // What went wrong is in the log, and what served before serves on.
    server.ReloadPrograms().IgnoreError();
  }
  spdlog::info("received signal {}: draining", number);
  // A second one ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

// Whole or not at all, for scripts that wait for the file.
absl::Status WritePortFile(const std::string& path, int port) {
  const std::string partial = path + ".partial";
  std::ofstream file(partial);
  file << port << '\n';
  file.close();
  if (!file || std::rename(partial.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError("cannot write " + path);
  }
  return absl::OkStatus();
}

absl::Status Run(const ServerOptions& options) {
  const sigset_t signals = BlockSignals();
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
                           Server::Start(options, base::Clock::Real()));
  if (!options.listen.port_file.empty()) {
    CIPHERD_RETURN_IF_ERROR(WritePortFile(options.listen.port_file, server->port()));
  }
  std::printf("listening on port %d\n", server->port());
  if (server->metrics_port() != 0) std::printf("metrics on port %d\n", server->metrics_port());
  std::fflush(stdout);
  CIPHERD_RETURN_IF_ERROR(server->LoadPrograms());
  ServeUntilTold(signals, *server);
  return server->Shutdown();
}

int Main(int argc, char** argv) {
  base::KeepLargeBlocks();
  // As Debian builds it, Abseil looks for deadlocks at every lock. Tests do that; here it is time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  int exit_code = 0;
  const absl::StatusOr<CommandLine> command_line = ParseCommandLine(argc, argv, exit_code);
  if (!command_line.ok()) return exit_code;
  SetUpLogging(command_line->log_level, command_line->log_format);
  const absl::Status status =
      command_line->probe.has_value() ? Probe(*command_line->probe) : Run(command_line->options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "cipherd: %s\n", std::string(status.ToString()).c_str());
  return 1;
}

}  // namespace
}  // namespace cipherd::server

int main(int argc, char** argv) { return cipherd::server::Main(argc, argv); }
