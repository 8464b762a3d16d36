// cipherd: parses its flags, starts the daemon, and waits for a signal to drain it.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
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
#include "server/engine/task_thread.h"
#include "server/logging.h"
#include "server/probe.h"
#include "server/server.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

// SIGTERM, SIGINT and SIGHUP, blocked in every thread, for this one to fetch. Before any thread
// starts.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Looks at the programs' directory again, on a thread of its own: that takes as long as programs
// take to load, and must not hold up the signal to leave.
class Reloader {
 public:
  explicit Reloader(Server& server) : server_(server), thread_("reloads") {}

  void Ask() {
    if (is_asked_for_.exchange(true)) return;
    thread_.Post([this] {
      is_asked_for_ = false;
      // What went wrong is in the log, and what served before serves on.
      server_.ReloadPrograms().IgnoreError();
    });
  }
  // Waits for a look that is under way.
  void Stop() { thread_.Stop(); }

 private:
  Server& server_;
  std::atomic<bool> is_asked_for_ = false;
  engine::TaskThread thread_;
};

// Asks for a look at the programs at each SIGHUP; returns at one of the others.
void ServeUntilTold(const sigset_t& signals, Reloader& reloader) {
  int number = 0;
  while (sigwait(&signals, &number) == 0 && number == SIGHUP) {
    spdlog::info("received SIGHUP: looking at the programs again");
    reloader.Ask();
  }
  spdlog::info("received signal {}: leaving", number);
}

// Returns once `duration` has passed, or one of the signals that end the daemon has come again.
void AwaitLameDuck(const sigset_t& signals, absl::Duration duration) {
  const auto now = [] {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  };
  const absl::Duration end = now() + duration;
  for (absl::Duration left = duration; left > absl::ZeroDuration(); left = end - now()) {
    const timespec timeout = absl::ToTimespec(left);
    const int number = sigtimedwait(&signals, nullptr, &timeout);
    if (number != SIGTERM && number != SIGINT) continue;
    spdlog::info("received signal {} again: draining now", number);
    return;
  }
}

// From here on, one of these signals ends the process at once. By a handler, since the kernel
// spares the first process of a container what it does by default.
void LetSignalsEndTheProcess(const sigset_t& signals) {
  struct sigaction action = {};
  action.sa_handler = [](int number) { _exit(128 + number); };
  for (const int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
  signal(SIGHUP, SIG_IGN);
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
  if (server->health_port() != 0) std::printf("health on port %d\n", server->health_port());
  std::fflush(stdout);
  CIPHERD_RETURN_IF_ERROR(server->LoadPrograms());
  Reloader reloader(*server);
  ServeUntilTold(signals, reloader);
  server->BeginLameDuck();
  AwaitLameDuck(signals, options.shutdown.lame_duck);
  LetSignalsEndTheProcess(signals);
  reloader.Stop();
  return server->Shutdown();
}

// One line of text for whoever asked.
absl::Status RunProbe(const ProbeOptions& options) {
  CIPHERD_RETURN_IF_ERROR(Probe(options));
  std::printf("%s: SERVING\n", options.address.c_str());
  return absl::OkStatus();
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
      command_line->probe.has_value() ? RunProbe(*command_line->probe) : Run(command_line->options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "cipherd: %s\n", std::string(status.ToString()).c_str());
  return 1;
}

}  // namespace
}  // namespace cipherd::server

int main(int argc, char** argv) { return cipherd::server::Main(argc, argv); }
