// A child process of a test: started, spoken to by signals, waited for.
//
//   ASSERT_OK_AND_ASSIGN(Process daemon, Process::Start({CIPHERD_BINARY, "--listen",
//   "127.0.0.1:0"})); ASSERT_OK_AND_ASSIGN(std::string line, daemon.ReadLine());
//   daemon.Signal(SIGTERM);
//   EXPECT_EQ(daemon.Wait(), 0);
//
// Move-only. One that is dropped while it runs is killed and reaped. Used by one thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cipherd::testing {

class Process {
 public:
  // Standard output is kept for ReadLine and ReadAll; standard error goes to `error_path`, where
  // given.
  static absl::StatusOr<Process> Start(const std::vector<std::string>& arguments,
                                       const std::string& error_path = "");
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // The next line of standard output, without its end. OutOfRange at the end of the output.
  absl::StatusOr<std::string> ReadLine();
  // The rest of standard output.
  std::string ReadAll();

  void Signal(int number) const;
  pid_t pid() const { return pid_; }
  // Exit status, or minus the signal that ended the process.
  int Wait();

 private:
  Process(pid_t pid, int output_fd) : pid_(pid), output_fd_(output_fd) {}
  void Kill();

  pid_t pid_ = -1;
  int output_fd_ = -1;
};

// Runs to the end.
struct ProcessResult {
  int exit_status = -1;
  std::string output;
  std::string errors;
};
ProcessResult RunProcess(const std::vector<std::string>& arguments);

}  // namespace cipherd::testing
