#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/client.h"
#include "client/ctl/commands.h"
#include "client/ctl/connection_flags.h"
#include "client/planning/schedule_report.h"
#include "client/terminal/progress_bar.h"
#include "client/terminal/text_table.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

struct Flags {
  ConnectionFlags connection;
  std::string name;
  uint32_t version = 0;
};

std::string FormatBytes(uint64_t bytes) {
  return FormatAmount(static_cast<double>(bytes), ProgressUnit::kBytes);
}

std::string FormatLayout(const programs::SlotLayout& layout) {
  return absl::StrCat("up to ", layout.item_count, " vectors of ", layout.element_count);
}

std::string FormatProgram(const ProgramDescription& program) {
  const ckks::ContextParameters& parameters = program.context->parameters();
  TextTable table({{""}, {""}});
  table.AddRow({"program", absl::StrCat(program.name, " version ", program.version)});
  table.AddRow({"", program.description});
  table.AddRow({"context", program.context->id()});
  table.AddRow({"", absl::StrFormat("N = 2^%d, %d + %d primes, log2(QP) = %.1f, depth %d",
                                    parameters.log_n, parameters.q_count(), parameters.p_count(),
                                    parameters.log_qp(), parameters.max_depth())});
  for (const programs::ProgramInput& input : program.inputs) {
    table.AddRow({absl::StrCat("input '", input.name, "'"), FormatLayout(input.layout)});
    if (!input.description.empty()) table.AddRow({"", input.description});
  }
  for (const programs::ProgramOutput& output : program.outputs) {
    table.AddRow({absl::StrCat("output '", output.name, "'"), FormatLayout(output.layout)});
    if (output.errors.element_count > 0) table.AddRow({"", FormatErrors(output.errors)});
    if (!output.description.empty()) table.AddRow({"", output.description});
  }
  table.AddRow(
      {"keys", absl::StrCat(program.required_keys.size(), ", ", FormatBytes(program.key_bytes))});
  table.AddRow({"an evaluation", absl::StrCat(FormatBytes(program.input_bytes), " up, ",
                                              FormatBytes(program.output_bytes), " down")});
  return table.ToString();
}

std::string FormatPrograms(const std::vector<v1::ProgramSummary>& programs) {
  TextTable table({{"program"}, {"version", Align::kRight}, {"ready"}, {"description"}});
  for (const v1::ProgramSummary& program : programs) {
    table.AddRow({program.name(), absl::StrCat(program.version()), program.ready() ? "yes" : "no",
                  program.description()});
  }
  return table.ToString();
}

absl::Status PrintPrograms(const Flags& flags) {
  const ClientOptions options = flags.connection.ToOptions();
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(options));
  if (flags.name.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(const std::vector<v1::ProgramSummary> programs,
                             client->ListPrograms());
    std::cout << FormatPrograms(programs);
  } else {
    CIPHERD_ASSIGN_OR_RETURN(const ProgramPtr program,
                             client->GetProgram(flags.name, flags.version));
    std::cout << FormatProgram(*program);
  }
  return absl::OkStatus();
}

}  // namespace

void AddProgramsCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "programs", "List the daemon's programs and their versions, or describe one");
  flags->connection.AddTo(*command);
  CLI::Option* name = command->add_option("name", flags->name, "Program to describe");
  command
      ->add_option("--program-version", flags->version,
                   "Version to describe (default: the newest that is ready)")
      ->needs(name);
  command->callback([flags, &status] { status = PrintPrograms(*flags); });
}

}  // namespace cipherd::client
