// The directory that holds the keys of one program (client/files/FILES.md).
//
//   KeyDirectory keys("keys");
//   ASSIGN_OR_RETURN(ProgramPtr program, keys.ReadProgram(policy));
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/program_description.h"
#include "core/secret/secret_key.h"

namespace cipherd::client {

class KeyDirectory {
 public:
  explicit KeyDirectory(std::string path) : path_(std::move(path)) {}

  std::string secret_key_path() const { return path_ + "/secret.key"; }
  std::string evaluation_keys_path() const { return path_ + "/evaluation.keys"; }
  std::string program_path() const { return path_ + "/program"; }
  std::string key_set_id_path() const { return path_ + "/key_set_id"; }

  // Makes the directory, mode 0700, unless it is there.
  absl::Status Create() const;
  absl::StatusOr<ProgramPtr> ReadProgram(ckks::SecurityPolicy policy) const;
  // InvalidArgument where it belongs to another context than the program.
  absl::StatusOr<secret::SecretKey> ReadSecretKey(const ProgramDescription& program,
                                                  ckks::SecurityPolicy policy) const;

  absl::Status WriteKeySetId(const std::string& key_set_id) const;
  // FailedPrecondition before put-keys.
  absl::StatusOr<std::string> ReadKeySetId() const;

 private:
  std::string path_;
};

}  // namespace cipherd::client
