// cipherd on a device that fails when it is told to, for tests of what an operator sees.
//
//   SIGUSR1   the next copy fails: a worker is out until it is rebuilt
//   SIGUSR2   the device fails for good, as CUDA's does after an error
//   SIGTERM   the end
//
// Flags and output are those of cipherd.
#include <signal.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "server/command_line.h"
#include "server/logging.h"
#include "server/server.h"
#include "tests/testing/fault_device.h"

namespace cipherd::testing {
namespace {

// Blocked in every thread, for FaultUntilTold to fetch. Before any thread starts.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

void FaultUntilTold(const sigset_t& signals, FaultDevice& device) {
  int number = 0;
  while (sigwait(&signals, &number) == 0 && number != SIGTERM) {
    const absl::Status error = absl::InternalError("a fault that a test asked for");
    if (number == SIGUSR1) {
      device.FailNth(FaultPoint::kCopy, 1, error);
    } else {
      device.Fail(error);
    }
  }
}

absl::Status Run(const server::ServerOptions& options) {
  const sigset_t signals = BlockSignals();
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Device> inner,
                           runtime::OpenDevice(options.device.spec, options.device.pools));
  auto owned = std::make_unique<FaultDevice>(std::move(inner));
  FaultDevice& device = *owned;
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<server::Server> server,
                           server::Server::Start(options, std::move(owned), base::Clock::Real()));
  std::printf("listening on port %d\nmetrics on port %d\n", server->port(), server->metrics_port());
  std::fflush(stdout);
  CIPHERD_RETURN_IF_ERROR(server->LoadPrograms());
  FaultUntilTold(signals, device);
  return server->Shutdown();
}

int Main(int argc, char** argv) {
  int exit_code = 0;
  const absl::StatusOr<server::CommandLine> command_line =
      server::ParseCommandLine(argc, argv, exit_code);
  if (!command_line.ok()) return exit_code;
  server::SetUpLogging(command_line->log_level, command_line->log_format);
  const absl::Status status = Run(command_line->options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "faulting_daemon: %s\n", std::string(status.ToString()).c_str());
  return 1;
}

}  // namespace
}  // namespace cipherd::testing

int main(int argc, char** argv) { return cipherd::testing::Main(argc, argv); }
