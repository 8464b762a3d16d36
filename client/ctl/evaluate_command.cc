#include <memory>
#include <string>

#include "client/client.h"
#include "client/ctl/commands.h"
#include "client/ctl/connection_flags.h"
#include "client/files/key_directory.h"
#include "client/files/values_file.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

struct Flags {
  ConnectionFlags connection;
  std::string keys;
  std::string input;
  std::string output;
  std::string request_id;
  double timeout_seconds = 60;
};

absl::Status Evaluate(const Flags& flags) {
  const ClientOptions options = flags.connection.ToOptions();
  const KeyDirectory keys(flags.keys);
  CIPHERD_ASSIGN_OR_RETURN(const ProgramPtr program, keys.ReadProgram(options.security_policy));
  CIPHERD_ASSIGN_OR_RETURN(const std::string key_set_id, keys.ReadKeySetId());
  CIPHERD_ASSIGN_OR_RETURN(
      EncryptedValues values,
      ReadValuesFile(flags.input, *program, program->input_signature, options.limits));
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(options));
  CIPHERD_ASSIGN_OR_RETURN(const EvaluationResult result,
                           client->Evaluate({.program = program,
                                             .key_set_id = key_set_id,
                                             .request_id = flags.request_id,
                                             .inputs = values.tree},
                                            {.timeout = absl::Seconds(flags.timeout_seconds)}));
  values.tree = result.outputs;
  return WriteValuesFile(flags.output, values);
}

}  // namespace

void AddEvaluateCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("evaluate", "Have the daemon evaluate encrypted inputs");
  flags->connection.AddTo(*command);
  command->add_option("--keys", flags->keys, "Directory of keygen, after put-keys")->required();
  command->add_option("--input", flags->input, "File of encrypt")->required();
  command->add_option("--output", flags->output, "File to write")->required();
  command->add_option("--request-id", flags->request_id,
                      "Stands in the daemon's log (default: random)");
  command->add_option("--timeout", flags->timeout_seconds, "Seconds until the result must be here")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([flags, &status] { status = Evaluate(*flags); });
}

}  // namespace cipherd::client
