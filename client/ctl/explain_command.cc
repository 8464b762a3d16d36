// explain: a program directory's operations, states, keys, bytes and times.
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/commands.h"
#include "client/planning/schedule_report.h"
#include "core/base/atomic_file.h"
#include "core/base/status_macros.h"
#include "core/planning/operation_costs.h"
#include "core/programs/catalog.h"
#include "core/runtime/device.h"
#include "proto/codec/program_codec.h"

namespace cipherd::client {
namespace {

struct Flags {
  std::string directory;
  std::string device = "cpu";
  std::string graph;
  bool with_times = true;
  bool allow_insecure = false;
};

// `directory` is a program's or that of one of its versions.
absl::StatusOr<std::shared_ptr<const programs::CheckedProgram>> Load(const Flags& flags) {
  namespace fs = std::filesystem;
  // Without a slash at the end.
  const fs::path place = fs::absolute(fs::path(flags.directory) / "").parent_path();
  const programs::CatalogOptions options = {
      .security = flags.allow_insecure ? ckks::SecurityPolicy::kAllowInsecure
                                       : ckks::SecurityPolicy::k128BitClassical};
  const std::string name = place.filename().string();
  const bool is_version =
      !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  const fs::path program = is_version ? place.parent_path() : place;
  const programs::ProgramCatalog catalog(program.parent_path().string(), codec::ParseProgramText,
                                         options);
  return catalog.Load({.name = program.filename().string(),
                       .version_directory = is_version ? name : std::string()});
}

absl::Status WriteGraph(const std::string& path, const std::string& graph) {
  CIPHERD_ASSIGN_OR_RETURN(base::AtomicFile file, base::AtomicFile::Create(path, 0644));
  CIPHERD_RETURN_IF_ERROR(
      file.Write({reinterpret_cast<const uint8_t*>(graph.data()), graph.size()}));
  return std::move(file).Commit(base::AtomicFile::Existing::kReplace);
}

absl::Status Explain(const Flags& flags) {
  CIPHERD_ASSIGN_OR_RETURN(const std::shared_ptr<const programs::CheckedProgram> program,
                           Load(flags));
  std::optional<planning::OperationCosts> costs;
  std::string device_name;
  if (flags.with_times) {
    CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Device> device,
                             runtime::OpenDevice(flags.device, {}));
    device_name = device->properties().name;
    CIPHERD_ASSIGN_OR_RETURN(costs, planning::MeasureOperations(program, *device));
  }
  if (!flags.graph.empty()) {
    CIPHERD_RETURN_IF_ERROR(WriteGraph(flags.graph, ScheduleGraph(*program, costs)));
  }
  std::cout << FormatSummary(*program, costs);
  if (costs) std::cout << "times measured on " << device_name << ", each operation alone\n";
  std::cout << "\n" << FormatSchedule(*program, costs);
  return absl::OkStatus();
}

}  // namespace

void AddExplainCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "explain",
      "Print what a program directory needs and what each of its operations takes; no daemon");
  command->add_option("directory", flags->directory, "Directory with program.textproto")
      ->required();
  command->add_option("--device", flags->device, "Device to measure on: cpu, cuda:N or auto")
      ->capture_default_str();
  command->add_flag("!--no-times", flags->with_times, "Measure nothing");
  command->add_option("--graph", flags->graph,
                      "Write the schedule for Graphviz (dot -Tsvg) to this file");
  command->add_flag("--allow-insecure-contexts", flags->allow_insecure,
                    "Take contexts below 128-bit security (for tests)");
  command->callback([flags, &status] { status = Explain(*flags); });
}

}  // namespace cipherd::client
