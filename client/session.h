// One program, one secret key: vectors in, vectors out.
//
//   ASSIGN_OR_RETURN(auto client, Client::Connect({.target = "127.0.0.1:7480"}));
//   ASSIGN_OR_RETURN(auto session, Session::Create(*client, "fashion_mlp"));
//   RETURN_IF_ERROR(session->UploadKeys());
//   ASSIGN_OR_RETURN(NamedVectors outputs, session->Evaluate({{"x", images}}));
//   Use(outputs["logits"]);
//
// The secret key stays here: it is made (or handed) in, wiped with the session, and no call sends
// it. The evaluation keys are exactly those that the program lists; each is made while the one
// before is sent.
//
// The client must outlive the session. Evaluate may be called by many threads at once; UploadKeys
// and DropKeys by one at a time and not while evaluations run. Errors as in client.h;
// FailedPrecondition before UploadKeys.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/program_cipher.h"
#include "core/secret/secret_key.h"

namespace cipherd::client {

class Session {
 public:
  // Asks for the program (Client::GetProgram), checks its context and makes a secret key.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const Client& client,
                                                         const std::string& program_name,
                                                         uint32_t program_version = 0);
  // With a secret key of an earlier session: InvalidArgument where it belongs to another context.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const Client& client, ProgramPtr program,
                                                         secret::SecretKey secret_key);

  const ProgramDescription& program() const { return *program_; }
  const ProgramPtr& program_ptr() const { return program_; }
  const ProgramCipher& cipher() const { return cipher_; }
  const secret::SecretKey& secret_key() const { return secret_key_; }

  using Progress = std::function<void(uint64_t sent_bytes, uint64_t total_bytes)>;
  // Makes the evaluation keys and sends them. `progress` may be null.
  absl::Status UploadKeys(const Progress& progress = nullptr, const CallOptions& options = {});
  // Deletes them from the daemon.
  absl::Status DropKeys(const CallOptions& options = {});
  // 64 hexadecimal digits; empty before UploadKeys. A set that was uploaded before can be named
  // instead.
  const std::string& key_set_id() const { return key_set_id_; }
  void set_key_set_id(std::string key_set_id) { key_set_id_ = std::move(key_set_id); }
  // Bytes of the messages of the last UploadKeys.
  uint64_t key_bytes_sent() const { return key_bytes_sent_; }

  // Sends what cipher() encrypted, and returns what it decrypts.
  absl::StatusOr<EvaluationResult> EvaluateEncrypted(value::ValueTree inputs,
                                                     const CallOptions& options = {}) const;

  // Encrypts, evaluates, decrypts. Outputs have as many items as the input with the most, where
  // their layout has places for them.
  absl::StatusOr<NamedVectors> Evaluate(const NamedVectors& inputs,
                                        const CallOptions& options = {}) const;

 private:
  Session(const Client& client, ProgramPtr program, secret::SecretKey secret_key);

  const Client& client_;
  const ProgramPtr program_;
  const secret::SecretKey secret_key_;
  const ProgramCipher cipher_;
  std::string key_set_id_;
  uint64_t key_bytes_sent_ = 0;
};

}  // namespace cipherd::client
