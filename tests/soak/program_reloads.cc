#include "tests/soak/program_reloads.h"

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "proto/codec/program_codec.h"

namespace cipherd::testing {

ProgramReloads::ProgramReloads(std::filesystem::path directory,
                               std::vector<programs::ProgramSpec> served,
                               programs::ProgramSpec visitor, const client::Client& client,
                               std::function<void()> reload)
    : directory_(std::move(directory)),
      served_(std::move(served)),
      visitor_(std::move(visitor)),
      client_(client),
      reload_(std::move(reload)) {}

absl::Status ProgramReloads::Step() {
  ++step_count_;
  programs::ProgramSpec& changed = served_[step_count_ % served_.size()];
  ++changed.version;
  changed.description = absl::StrCat("as of reload ", step_count_);
  CIPHERD_RETURN_IF_ERROR(Write(changed));
  is_visitor_here_ = !is_visitor_here_;
  CIPHERD_RETURN_IF_ERROR(is_visitor_here_ ? Write(visitor_) : Remove(visitor_));
  reload_();
  return Await(changed.description, [&] {
    return ServedDescription(changed.name) == changed.description &&
           ServedDescription(visitor_.name) == (is_visitor_here_ ? visitor_.description : "");
  });
}

absl::Status ProgramReloads::RemoveAll() {
  std::vector<programs::ProgramSpec> all = served_;
  all.push_back(visitor_);
  for (const programs::ProgramSpec& spec : all) CIPHERD_RETURN_IF_ERROR(Remove(spec));
  reload_();
  return Await("nothing", [&] {
    return std::all_of(all.begin(), all.end(), [this](const programs::ProgramSpec& spec) {
      return ServedDescription(spec.name).empty();
    });
  });
}

// Whole or not at all: the daemon may be reading.
absl::Status ProgramReloads::Write(const programs::ProgramSpec& spec) const {
  CIPHERD_ASSIGN_OR_RETURN(const std::string text, codec::PrintProgramText(spec));
  const std::filesystem::path partial = directory_.string() + ".partial";
  std::ofstream(partial) << text;
  std::error_code error;
  std::filesystem::create_directories(directory_ / spec.name, error);
  std::filesystem::rename(partial, directory_ / spec.name / "program.textproto", error);
  return error ? absl::UnavailableError(absl::StrCat(spec.name, ": ", error.message()))
               : absl::OkStatus();
}

absl::Status ProgramReloads::Remove(const programs::ProgramSpec& spec) const {
  std::error_code error;
  std::filesystem::remove_all(directory_ / spec.name, error);
  return error ? absl::UnavailableError(absl::StrCat(spec.name, ": ", error.message()))
               : absl::OkStatus();
}

absl::Status ProgramReloads::Await(const std::string& what,
                                   const std::function<bool()>& holds) const {
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (!holds()) {
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat("not served within a minute: ", what));
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  return absl::OkStatus();
}

std::string ProgramReloads::ServedDescription(const std::string& name) const {
  const absl::StatusOr<client::ProgramPtr> program = client_.GetProgram(name);
  return program.ok() ? (*program)->description : "";
}

}  // namespace cipherd::testing
