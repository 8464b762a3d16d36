#include "tests/integration/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

extern char** environ;

namespace cipherd::testing {

absl::StatusOr<Process> Process::Start(const std::vector<std::string>& arguments,
                                       const std::string& error_path) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
  if (!error_path.empty()) {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, error_path.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_fds[1]);
  if (error != 0) {
    close(pipe_fds[0]);
    return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", arguments[0]));
  }
  return Process(pid, pipe_fds[0]);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), output_fd_(std::exchange(other.output_fd_, -1)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    Kill();
    pid_ = std::exchange(other.pid_, -1);
    output_fd_ = std::exchange(other.output_fd_, -1);
  }
  return *this;
}

Process::~Process() { Kill(); }

void Process::Kill() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    Wait();
  }
  if (output_fd_ >= 0) close(std::exchange(output_fd_, -1));
}

absl::StatusOr<std::string> Process::ReadLine() {
  std::string line;
  char c = 0;
  while (read(output_fd_, &c, 1) == 1) {
    if (c == '\n') return line;
    line += c;
  }
  return absl::OutOfRangeError("the process has ended its output");
}

std::string Process::ReadAll() {
  std::string text;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = read(output_fd_, buffer, sizeof(buffer))) > 0) text.append(buffer, count);
  return text;
}

void Process::Signal(int number) const { kill(pid_, number); }

int Process::Wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

ProcessResult RunProcess(const std::vector<std::string>& arguments) {
  std::string error_path = ::testing::TempDir() + "cipherd_stderr_XXXXXX";
  const int fd = mkstemp(error_path.data());
  close(fd);
  ProcessResult result;
  absl::StatusOr<Process> process = Process::Start(arguments, error_path);
  if (!process.ok()) {
    result.errors = process.status().ToString();
    return result;
  }
  result.output = process->ReadAll();
  result.exit_status = process->Wait();
  std::ifstream errors(error_path);
  result.errors = {std::istreambuf_iterator<char>(errors), {}};
  unlink(error_path.c_str());
  return result;
}

}  // namespace cipherd::testing
