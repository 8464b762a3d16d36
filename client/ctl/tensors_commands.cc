#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/commands.h"
#include "client/files/key_directory.h"
#include "client/files/tensor_files.h"
#include "client/files/values_file.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

struct Flags {
  std::string keys;
  std::string input;
  std::vector<std::string> tensors;
  std::string output;
  int64_t items = 0;
  bool allow_insecure_contexts = false;

  ckks::SecurityPolicy policy() const {
    return allow_insecure_contexts ? ckks::SecurityPolicy::kAllowInsecure
                                   : ckks::SecurityPolicy::k128BitClassical;
  }
};

template <typename Port>
std::vector<std::string> NamesOf(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return names;
}

absl::Status Export(const Flags& flags) {
  CIPHERD_ASSIGN_OR_RETURN(const ProgramPtr program,
                           KeyDirectory(flags.keys).ReadProgram(flags.policy()));
  CIPHERD_ASSIGN_OR_RETURN(const EncryptedValues values,
                           ReadValuesFile(flags.input, *program, program->input_signature, {}));
  return WriteTensorFiles(flags.output, NamesOf(program->inputs), values.tree);
}

absl::Status Import(const Flags& flags) {
  CIPHERD_ASSIGN_OR_RETURN(const ProgramPtr program,
                           KeyDirectory(flags.keys).ReadProgram(flags.policy()));
  std::map<std::string, std::string> files;
  for (const std::string& argument : flags.tensors) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--input: expected NAME=FILE, got '", argument, "'"));
    }
    const std::string name = argument.substr(0, equals);
    if (!files.emplace(name, argument.substr(equals + 1)).second) {
      return absl::InvalidArgumentError(absl::StrCat("--input: '", name, "' is given twice"));
    }
  }
  EncryptedValues values;
  values.program = program->name;
  values.item_count = flags.items;
  if (values.item_count == 0) {
    for (const programs::ProgramOutput& output : program->outputs) {
      values.item_count = std::max(values.item_count, output.layout.item_count);
    }
  }
  CIPHERD_ASSIGN_OR_RETURN(
      values.tree, ReadTensorFiles(files, NamesOf(program->outputs), program->output_signature,
                                   program->known_context));
  return WriteValuesFile(flags.output, values);
}

void AddCommonFlags(CLI::App& command, Flags& flags) {
  command.add_option("--keys", flags.keys, "Directory of keygen")->required();
  command.add_flag("--allow-insecure-contexts", flags.allow_insecure_contexts,
                   "Take programs below 128-bit security: for tests");
}

}  // namespace

void AddExportTensorsCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "export-tensors",
      "Write encrypted inputs as NumPy arrays, for clients of the Open Inference Protocol");
  AddCommonFlags(*command, *flags);
  command->add_option("--input", flags->input, "File of encrypt")->required();
  command->add_option("--output", flags->output, "Directory of NAME.npy for each input")
      ->required();
  command->callback([flags, &status] { status = Export(*flags); });
}

void AddImportTensorsCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "import-tensors", "Make a file for decrypt of a result that such a client got");
  AddCommonFlags(*command, *flags);
  command->add_option("--input", flags->tensors, "NAME=FILE.npy for each output")->required();
  command->add_option("--output", flags->output, "File to write")->required();
  command
      ->add_option("--items", flags->items,
                   "Vectors that were encrypted (default: as many as there is room for)")
      ->check(CLI::PositiveNumber);
  command->callback([flags, &status] { status = Import(*flags); });
}

}  // namespace cipherd::client
