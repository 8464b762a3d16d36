#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/commands.h"
#include "client/files/key_directory.h"
#include "client/files/values_file.h"
#include "client/files/vector_file.h"
#include "client/program_cipher.h"
#include "core/base/status_macros.h"
#include "core/secret/random.h"

namespace cipherd::client {
namespace {

struct Flags {
  std::string keys;
  std::vector<std::string> inputs;
  std::string output;
  bool allow_insecure_contexts = false;
};

absl::StatusOr<NamedVectors> ReadInputs(const std::vector<std::string>& arguments) {
  NamedVectors inputs;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--input: expected NAME=FILE, got '", argument, "'"));
    }
    const std::string name = argument.substr(0, equals);
    if (inputs.count(name) > 0) {
      return absl::InvalidArgumentError(absl::StrCat("--input: '", name, "' is given twice"));
    }
    CIPHERD_ASSIGN_OR_RETURN(inputs[name], ReadVectors(argument.substr(equals + 1)));
  }
  return inputs;
}

absl::Status Encrypt(const Flags& flags) {
  const auto policy = flags.allow_insecure_contexts ? ckks::SecurityPolicy::kAllowInsecure
                                                    : ckks::SecurityPolicy::k128BitClassical;
  const KeyDirectory keys(flags.keys);
  CIPHERD_ASSIGN_OR_RETURN(const ProgramPtr program, keys.ReadProgram(policy));
  CIPHERD_ASSIGN_OR_RETURN(const secret::SecretKey secret_key,
                           keys.ReadSecretKey(*program, policy));
  CIPHERD_ASSIGN_OR_RETURN(const NamedVectors inputs, ReadInputs(flags.inputs));

  CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
  EncryptedValues values;
  values.program = program->name;
  for (const auto& [name, items] : inputs) {
    values.item_count = std::max(values.item_count, static_cast<int64_t>(items.size()));
  }
  CIPHERD_ASSIGN_OR_RETURN(values.tree,
                           ProgramCipher(program, secret_key).EncryptInputs(inputs, random));
  return WriteValuesFile(flags.output, values);
}

}  // namespace

void AddEncryptCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("encrypt", "Encrypt the inputs of one evaluation; needs no daemon");
  command->add_option("--keys", flags->keys, "Directory of keygen")->required();
  command
      ->add_option("--input", flags->inputs,
                   "NAME=FILE for each input: .csv, .json or .npy, one vector a row")
      ->required();
  command->add_option("--output", flags->output, "File to write")->required();
  command->add_flag("--allow-insecure-contexts", flags->allow_insecure_contexts,
                    "Take programs below 128-bit security: for tests");
  command->callback([flags, &status] { status = Encrypt(*flags); });
}

}  // namespace cipherd::client
