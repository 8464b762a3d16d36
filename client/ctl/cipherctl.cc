// cipherctl: keys, encryption, evaluation, decryption and load from the command line.
#include <iostream>

#include "CLI/CLI.hpp"
#include "client/ctl/commands.h"
#include "client/ctl/connection_flags.h"
#include "core/base/allocator_policy.h"

int main(int argc, char** argv) {
  using namespace cipherd::client;  // NOLINT: the program is an application of it
  cipherd::base::KeepLargeBlocks();
  absl::Status status;
  CLI::App app(
      "Keys, encryption and evaluation against a cipherd daemon.\n\n"
      "  cipherctl keygen --program NAME --keys DIR\n"
      "  cipherctl put-keys --keys DIR\n"
      "  cipherctl encrypt --keys DIR --input NAME=FILE --output inputs.ct\n"
      "  cipherctl evaluate --keys DIR --input inputs.ct --output result.ct\n"
      "  cipherctl decrypt --keys DIR --input result.ct\n"
      "  cipherctl load --program NAME --concurrency-range 1:64:21 --verify");
  app.require_subcommand(1);
  AddStatusCommand(app, status);
  AddProgramsCommand(app, status);
  AddKeygenCommand(app, status);
  AddPutKeysCommand(app, status);
  AddDropKeysCommand(app, status);
  AddEncryptCommand(app, status);
  AddEvaluateCommand(app, status);
  AddDecryptCommand(app, status);
  AddExportTensorsCommand(app, status);
  AddImportTensorsCommand(app, status);
  AddPlanCommand(app, status);
  AddExplainCommand(app, status);
  AddLoadCommand(app, status);
  CLI11_PARSE(app, argc, argv);
  if (!status.ok()) {
    std::cerr << "cipherctl: " << DescribeError(status) << "\n";
    return 1;
  }
  return 0;
}
