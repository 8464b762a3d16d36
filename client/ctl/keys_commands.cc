// put-keys and drop-keys.
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "client/client.h"
#include "client/ctl/commands.h"
#include "client/ctl/connection_flags.h"
#include "client/files/key_directory.h"
#include "client/files/key_set_file.h"
#include "client/terminal/progress_bar.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

struct Flags {
  ConnectionFlags connection;
  std::string keys;

  void AddTo(CLI::App& command) {
    connection.AddTo(command);
    command.add_option("--keys", keys, "Directory of keygen")->required();
  }
};

// The hash that ends the file: the same file continues the same upload, also after this process was
// interrupted. Empty where it cannot be read; the reader of the file says why.
std::string UploadIdOf(const std::string& path) {
  std::string hash(32, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(-static_cast<std::streamoff>(hash.size()), std::ios::end);
  file.read(hash.data(), static_cast<std::streamsize>(hash.size()));
  return file ? hash : "";
}

absl::Status PutKeys(const Flags& flags) {
  const ClientOptions options = flags.connection.ToOptions();
  const KeyDirectory keys(flags.keys);
  CIPHERD_ASSIGN_OR_RETURN(const ProgramPtr program, keys.ReadProgram(options.security_policy));
  CIPHERD_ASSIGN_OR_RETURN(
      KeySetFileReader file,
      KeySetFileReader::Open(keys.evaluation_keys_path(), program->known_context, options.limits));

  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(options));
  ProgressBar progress("sending evaluation keys", static_cast<int64_t>(file.total_bytes()),
                       ProgressUnit::kBytes);
  CIPHERD_ASSIGN_OR_RETURN(
      const std::unique_ptr<KeyUpload> upload,
      client->StartKeyUpload(
          {.context = program->known_context,
           .key_count = file.key_count(),
           .total_bytes = file.total_bytes(),
           .progress = [&](uint64_t sent_bytes,
                           uint64_t) { progress.Update(static_cast<int64_t>(sent_bytes)); },
           .upload_id = UploadIdOf(keys.evaluation_keys_path()),
           // Of an earlier upload.
           .key_set_id = keys.ReadKeySetId().value_or("")}));
  for (int i = 0; i < file.key_count(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(const value::ExactValue key, file.ReadKey());
    CIPHERD_RETURN_IF_ERROR(upload->Add(key));
  }
  // Before the daemon is told that the set is whole.
  CIPHERD_RETURN_IF_ERROR(file.Finish());
  CIPHERD_ASSIGN_OR_RETURN(const std::string key_set_id, upload->Finish());
  progress.Finish();
  CIPHERD_RETURN_IF_ERROR(keys.WriteKeySetId(key_set_id));
  std::cout << key_set_id << "\n";
  return absl::OkStatus();
}

absl::Status DropKeys(const Flags& flags) {
  const ClientOptions options = flags.connection.ToOptions();
  CIPHERD_ASSIGN_OR_RETURN(const std::string key_set_id, KeyDirectory(flags.keys).ReadKeySetId());
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(options));
  return client->DropKeys(key_set_id);
}

}  // namespace

void AddPutKeysCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("put-keys", "Upload the evaluation keys (never the secret key)");
  flags->AddTo(*command);
  command->callback([flags, &status] { status = PutKeys(*flags); });
}

void AddDropKeysCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("drop-keys", "Delete the uploaded evaluation keys from the daemon");
  flags->AddTo(*command);
  command->callback([flags, &status] { status = DropKeys(*flags); });
}

}  // namespace cipherd::client
