#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "client/ctl/commands.h"
#include "client/ctl/connection_flags.h"
#include "client/terminal/progress_bar.h"
#include "client/terminal/text_table.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

std::string FormatBytes(uint64_t bytes) {
  return FormatAmount(static_cast<double>(bytes), ProgressUnit::kBytes);
}

absl::Status PrintStatus(const ConnectionFlags& flags) {
  const ClientOptions options = flags.ToOptions();
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(options));
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<v1::ProgramSummary> programs, client->ListPrograms());
  int ready_count = 0;
  for (const v1::ProgramSummary& program : programs) ready_count += program.ready();

  const v1::ServerInfo& info = client->server_info();
  TextTable table({{""}, {""}});
  table.AddRow({"server", flags.server});
  table.AddRow({"version", info.version()});
  table.AddRow({"device", absl::StrCat(info.device(), " (", info.device_name(), ")")});
  table.AddRow({"programs ready", absl::StrCat(ready_count, " of ", programs.size())});
  table.AddRow({"largest request", FormatBytes(info.limits().max_request_bytes())});
  table.AddRow({"largest key set", FormatBytes(info.limits().max_key_set_bytes())});
  table.AddRow({"largest chunk", FormatBytes(info.limits().max_chunk_bytes())});
  if (info.insecure_contexts_allowed()) table.AddRow({"insecure contexts", "ALLOWED"});
  std::cout << table.ToString();
  return absl::OkStatus();
}

}  // namespace

void AddStatusCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<ConnectionFlags>();
  CLI::App* command =
      app.add_subcommand("status", "Show what the daemon is and whether it is ready");
  flags->AddTo(*command);
  command->callback([flags, &status] { status = PrintStatus(*flags); });
}

}  // namespace cipherd::client
