#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "client/client.h"
#include "client/ctl/commands.h"
#include "client/ctl/connection_flags.h"
#include "client/files/key_directory.h"
#include "client/files/key_set_file.h"
#include "client/files/program_file.h"
#include "client/files/secret_key_file.h"
#include "client/terminal/progress_bar.h"
#include "core/base/status_macros.h"
#include "core/secret/key_generator.h"
#include "core/secret/random.h"

namespace cipherd::client {
namespace {

struct Flags {
  ConnectionFlags connection;
  std::string program;
  uint32_t program_version = 0;
  std::string keys;
};

absl::Status WriteEvaluationKeys(const std::string& path, const ProgramDescription& program,
                                 const secret::SecretKey& secret_key, secret::Random& random) {
  const ckks::ContextParameters& parameters = program.context->parameters();
  CIPHERD_ASSIGN_OR_RETURN(
      KeySetFileWriter file,
      KeySetFileWriter::Create(path, *program.known_context, program.required_keys.size(),
                               program.key_bytes));
  ProgressBar progress("making evaluation keys", program.required_keys.size(),
                       ProgressUnit::kItems);
  CIPHERD_RETURN_IF_ERROR(
      secret::KeyGenerator(secret_key)
          .GenerateKeys(program.required_keys, random,
                        [&](secret::GeneratedKey generated, int done_count, int) {
                          progress.Update(done_count);
                          return file.Add(generated.key.ToValue(parameters, program.context->id()));
                        }));
  progress.Finish();
  return std::move(file).Commit();
}

absl::Status MakeKeys(const Flags& flags) {
  const ClientOptions options = flags.connection.ToOptions();
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(options));
  CIPHERD_ASSIGN_OR_RETURN(const v1::GetProgramResponse message,
                           client->GetProgramMessage(flags.program, flags.program_version));
  CIPHERD_ASSIGN_OR_RETURN(
      const ProgramPtr program,
      ProgramDescription::FromMessage(message, options.security_policy, flags.program_version));

  const KeyDirectory keys(flags.keys);
  CIPHERD_RETURN_IF_ERROR(keys.Create());
  CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
  const secret::SecretKey secret_key = secret::SecretKey::Generate(program->context, random);
  // First: where there is a secret key already, nothing beside it may change.
  CIPHERD_RETURN_IF_ERROR(WriteSecretKeyFile(keys.secret_key_path(), secret_key));
  CIPHERD_RETURN_IF_ERROR(WriteProgramFile(keys.program_path(), message, flags.program_version));
  return WriteEvaluationKeys(keys.evaluation_keys_path(), *program, secret_key, random);
}

}  // namespace

void AddKeygenCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("keygen",
                                         "Make a secret key and exactly the evaluation keys that a "
                                         "program reads; sends nothing of them");
  flags->connection.AddTo(*command);
  command->add_option("--program", flags->program, "Program of the daemon")->required();
  command->add_option("--program-version", flags->program_version,
                      "Evaluate exactly this version (default: the newest that is ready)");
  command
      ->add_option("--keys", flags->keys,
                   "Directory to make; a secret key in it is never overwritten")
      ->required();
  command->callback([flags, &status] { status = MakeKeys(*flags); });
}

}  // namespace cipherd::client
