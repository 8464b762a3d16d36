#include "client/files/key_directory.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/files/program_file.h"
#include "client/files/secret_key_file.h"
#include "core/base/atomic_file.h"
#include "core/base/file_descriptor.h"
#include "core/base/status_macros.h"

namespace cipherd::client {

absl::Status KeyDirectory::Create() const {
  if (mkdir(path_.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return base::ErrnoStatus("cannot make directory", path_);
}

absl::StatusOr<ProgramPtr> KeyDirectory::ReadProgram(ckks::SecurityPolicy policy) const {
  return ReadProgramFile(program_path(), policy);
}

absl::StatusOr<secret::SecretKey> KeyDirectory::ReadSecretKey(const ProgramDescription& program,
                                                              ckks::SecurityPolicy policy) const {
  CIPHERD_ASSIGN_OR_RETURN(secret::SecretKey secret_key,
                           ReadSecretKeyFile(secret_key_path(), policy));
  if (secret_key.context()->id() != program.context->id()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", secret_key_path(), "': expected a key of context ", program.context->id(),
                     ", got one of ", secret_key.context()->id()));
  }
  return secret_key;
}

absl::Status KeyDirectory::WriteKeySetId(const std::string& key_set_id) const {
  const std::string line = key_set_id + "\n";
  CIPHERD_ASSIGN_OR_RETURN(base::AtomicFile file,
                           base::AtomicFile::Create(key_set_id_path(), 0644));
  CIPHERD_RETURN_IF_ERROR(
      file.Write(std::span(reinterpret_cast<const uint8_t*>(line.data()), line.size())));
  return std::move(file).Commit(base::AtomicFile::Existing::kReplace);
}

absl::StatusOr<std::string> KeyDirectory::ReadKeySetId() const {
  std::ifstream file(key_set_id_path());
  std::string key_set_id;
  if (!(file >> key_set_id)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot read '", key_set_id_path(), "': upload the keys first (cipherctl put-keys)"));
  }
  return key_set_id;
}

}  // namespace cipherd::client
