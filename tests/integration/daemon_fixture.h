// A daemon as a process of its own on a free port of this machine, for tests of daemon and client
// together.
//
//   class ClientTest : public DaemonTest {};
//   TEST_F(ClientTest, …) {
//     ASSERT_OK(StartDaemon(SmallPrograms()));
//     ASSERT_OK_AND_ASSIGN(auto client, Connect());
//   }
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/slot_layout.h"
#include "core/programs/program_spec.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"
#include "tests/testing/metrics_page.h"

namespace cipherd::testing {

// Name of the program of SmallPrograms(): output y[j] = x[(j + 1) mod 512]^2 over 512 slots, in an
// insecure context of ring degree 2^10; input and output hold 2 vectors of 256 elements, element j
// of vector k in slot 2j + k.
inline constexpr char kSmallProgram[] = "square_and_turn";

// The same over ring degree 2^log_n: 2 vectors of 2^(log_n - 2) elements.
programs::ProgramSpec SquareAndTurn(const std::string& name, int log_n);
// What it makes of 2 vectors.
client::Vectors SquaredAndTurned(const client::Vectors& x);

class DaemonTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A programs directory that holds kSmallProgram.
  std::string SmallPrograms();
  // One that holds these.
  std::string WritePrograms(const std::vector<programs::ProgramSpec>& specs) const;
  // One into a directory of its own.
  static void WriteProgram(const programs::ProgramSpec& spec, const std::string& directory);
  // The repository's.
  static std::string DeployedPrograms();

  // Returns once `program` is SERVING.
  absl::Status StartDaemon(const std::string& programs, const std::string& program,
                           const std::vector<std::string>& flags = {});
  // Returns once `program` is SERVING.
  absl::Status AwaitServing(const std::string& program) const;
  // Sends SIGTERM. Returns the exit status.
  int StopDaemon();

  std::string address() const { return address_; }
  int port() const { return port_; }
  client::ClientOptions Options() const;
  absl::StatusOr<std::unique_ptr<client::Client>> Connect() const {
    return client::Client::Connect(Options());
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  absl::StatusOr<MetricsPage> Metrics() const;
  // What the daemon logged.
  std::string Log() const;

  std::optional<Process> daemon_;

 private:
  std::string directory_;
  std::string address_;
  int port_ = 0;
  int metrics_port_ = 0;
};

}  // namespace cipherd::testing
