#include <iostream>
#include <memory>
#include <string>

#include "client/ctl/commands.h"
#include "client/files/key_directory.h"
#include "client/files/values_file.h"
#include "client/files/vector_file.h"
#include "client/program_cipher.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace cipherd::client {
namespace {

struct Flags {
  std::string keys;
  std::string input;
  std::string format = "json";
  bool allow_insecure_contexts = false;
};

void Print(const NamedVectors& outputs, const std::string& format) {
  if (format == "json") {
    std::cout << nlohmann::json(outputs).dump() << "\n";
    return;
  }
  for (const auto& [name, vectors] : outputs) {
    if (outputs.size() > 1) std::cout << "# " << name << "\n";
    std::cout << ToCsv(vectors);
  }
}

absl::Status Decrypt(const Flags& flags) {
  const auto policy = flags.allow_insecure_contexts ? ckks::SecurityPolicy::kAllowInsecure
                                                    : ckks::SecurityPolicy::k128BitClassical;
  const KeyDirectory keys(flags.keys);
  CIPHERD_ASSIGN_OR_RETURN(const ProgramPtr program, keys.ReadProgram(policy));
  CIPHERD_ASSIGN_OR_RETURN(const secret::SecretKey secret_key,
                           keys.ReadSecretKey(*program, policy));
  CIPHERD_ASSIGN_OR_RETURN(const EncryptedValues values,
                           ReadValuesFile(flags.input, *program, program->output_signature, {}));
  CIPHERD_ASSIGN_OR_RETURN(
      const NamedVectors outputs,
      ProgramCipher(program, secret_key).DecryptOutputs(values.tree, values.item_count));
  Print(outputs, flags.format);
  return absl::OkStatus();
}

}  // namespace

void AddDecryptCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "decrypt", "Decrypt a result and print it: for your eyes, not to be passed on");
  command->add_option("--keys", flags->keys, "Directory of keygen")->required();
  command->add_option("--input", flags->input, "File of evaluate")->required();
  command->add_option("--format", flags->format, "json or csv")
      ->check(CLI::IsMember({"json", "csv"}))
      ->capture_default_str();
  command->add_flag("--allow-insecure-contexts", flags->allow_insecure_contexts,
                    "Take programs below 128-bit security: for tests");
  command->callback([flags, &status] { status = Decrypt(*flags); });
}

}  // namespace cipherd::client
