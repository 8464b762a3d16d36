// Changes the programs of a daemon while it serves them: one of them is replaced by a new version
// of itself, and another comes or goes, at each step.
//
//   ProgramReloads reloads(directory, {small, large}, visitor, client, [&] { daemon.Signal(SIGHUP);
//   }); ASSERT_OK(reloads.Step()); ASSERT_OK(reloads.SendVisitorAway());
//
// Used by one thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"
#include "core/programs/program_spec.h"

namespace cipherd::testing {

class ProgramReloads {
 public:
  // `directory` holds `served`. `reload` tells the daemon to read it again. `client` outlives this.
  ProgramReloads(std::filesystem::path directory, std::vector<programs::ProgramSpec> served,
                 programs::ProgramSpec visitor, const client::Client& client,
                 std::function<void()> reload);

  // Changes the directory, and returns when the daemon serves what it holds. DeadlineExceeded where
  // it does not within a minute.
  absl::Status Step();
  // As a step that leaves the directory empty.
  absl::Status RemoveAll();

 private:
  absl::Status Write(const programs::ProgramSpec& spec) const;
  absl::Status Remove(const programs::ProgramSpec& spec) const;
  absl::Status Await(const std::string& what, const std::function<bool()>& holds) const;
  // Of the program that is served; empty without one.
  std::string ServedDescription(const std::string& name) const;

  const std::filesystem::path directory_;
  std::vector<programs::ProgramSpec> served_;
  programs::ProgramSpec visitor_;
  const client::Client& client_;
  const std::function<void()> reload_;
  int step_count_ = 0;
  bool is_visitor_here_ = false;
};

}  // namespace cipherd::testing
