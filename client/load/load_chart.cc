#include "client/load/load_chart.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/base/status_macros.h"

extern char** environ;

namespace cipherd::client {
namespace {

absl::StatusOr<std::string> TerminalFor(const std::string& path) {
  if (absl::EndsWith(path, ".svg")) return "svg size 900,560 enhanced background 'white'";
  if (absl::EndsWith(path, ".png")) return "pngcairo size 900,560 enhanced";
  return absl::InvalidArgumentError(
      absl::StrCat("chart '", path, "': expected a name that ends in .svg or .png"));
}

// A string of gnuplot's in single quotes: only the quote itself has a meaning.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}, {"\n", " "}}), "'");
}

// Names of programs and devices are text, not markup.
std::string Title(const LoadReport& report) {
  std::string programs;
  for (const std::string& program : report.programs) {
    absl::StrAppend(&programs, programs.empty() ? "" : ", ", program);
  }
  return absl::StrCat("cipherd ", report.server_version, " on ", report.device, ": ", programs,
                      ", tenants: ", report.tenant_count);
}

// Runs gnuplot and returns what it said, which is nothing where all went well.
absl::StatusOr<std::string> RunGnuplot(const std::vector<std::string>& arguments) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDERR_FILENO);
  std::vector<char*> argv = {const_cast<char*>("gnuplot")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_fds[1]);
  if (error != 0) {
    close(pipe_fds[0]);
    return absl::FailedPreconditionError(
        "charts are drawn by gnuplot, which is not here: apt-get install gnuplot-nox");
  }
  std::string said;
  char buffer[512];
  for (ssize_t n; (n = read(pipe_fds[0], buffer, sizeof(buffer))) > 0;) said.append(buffer, n);
  close(pipe_fds[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return said;
  return absl::InternalError(absl::StrCat("gnuplot failed: ", said));
}

}  // namespace

absl::Status CheckCanDraw(const std::string& path) {
  CIPHERD_RETURN_IF_ERROR(TerminalFor(path).status());
  return RunGnuplot({"--version"}).status();
}

absl::StatusOr<std::string> LoadChartScript(const LoadReport& report, const std::string& path) {
  CIPHERD_ASSIGN_OR_RETURN(const std::string terminal, TerminalFor(path));
  const bool is_closed = report.options.mode == LoadMode::kConcurrency;
  std::string script = absl::StrCat("$load << EOD\n");
  for (const LevelReport& level : report.levels) {
    const LatencySummary& latency = level.statistics.latency;
    absl::StrAppendFormat(&script, "%.17g %.9g %.9g %.9g %.9g %.9g\n", level.level,
                          latency.p50 * 1e3, latency.p90 * 1e3, latency.p95 * 1e3,
                          latency.p99 * 1e3, level.statistics.throughput);
  }
  absl::StrAppend(
      &script, "EOD\nset terminal ", terminal, "\nset title ", Quoted(Title(report)),
      " noenhanced\nset xlabel ",
      Quoted(is_closed ? "clients, each with one request at a time" : "requests due a second"),
      "\nset ylabel ", Quoted(is_closed ? "latency (ms)" : "latency from the time due (ms)"),
      "\nset y2label 'results a second'\n"
      "set key outside below horizontal\nset grid\nset ytics nomirror\nset y2tics\n"
      "set yrange [0:*]\nset y2range [0:*]\nset offsets graph 0.03, 0.03, 0.05, 0\n"
      "plot $load using 1:2 with linespoints linewidth 2 title 'p50', \\\n"
      "  $load using 1:3 with linespoints linewidth 2 title 'p90', \\\n"
      "  $load using 1:4 with linespoints linewidth 2 title 'p95', \\\n"
      "  $load using 1:5 with linespoints linewidth 2 title 'p99', \\\n"
      "  $load using 1:6 axes x1y2 with linespoints dashtype 2 linecolor 'gray40' "
      "title 'throughput (right)'\n");
  return script;
}

absl::Status DrawLoadChart(const LoadReport& report, const std::string& path) {
  CIPHERD_ASSIGN_OR_RETURN(const std::string script, LoadChartScript(report, path));
  // A chart that is left half drawn has another name.
  const std::string partial = path + ".partial";
  const std::string script_path = path + ".gnuplot";
  std::ofstream file(script_path);
  file << "set output " << Quoted(partial) << "\n" << script;
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write '", script_path, "'"));
  const absl::StatusOr<std::string> drawn = RunGnuplot({script_path});
  unlink(script_path.c_str());
  if (drawn.ok() && std::rename(partial.c_str(), path.c_str()) == 0) return absl::OkStatus();
  unlink(partial.c_str());
  return drawn.ok() ? absl::InternalError(absl::StrCat("gnuplot drew no '", path, "': ", *drawn))
                    : drawn.status();
}

}  // namespace cipherd::client
