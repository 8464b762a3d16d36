#include "client/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/secret/key_generator.h"
#include "core/secret/random.h"

namespace cipherd::client {

Session::Session(const Client& client, ProgramPtr program, secret::SecretKey secret_key)
    : client_(client),
      program_(std::move(program)),
      secret_key_(std::move(secret_key)),
      cipher_(program_, secret_key_) {}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const Client& client,
                                                         const std::string& program_name,
                                                         uint32_t program_version) {
  CIPHERD_ASSIGN_OR_RETURN(ProgramPtr program, client.GetProgram(program_name, program_version));
  CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
  secret::SecretKey secret_key = secret::SecretKey::Generate(program->context, random);
  return Create(client, std::move(program), std::move(secret_key));
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const Client& client, ProgramPtr program,
                                                         secret::SecretKey secret_key) {
  if (secret_key.context()->id() != program->context->id()) {
    return absl::InvalidArgumentError(absl::StrCat("secret key: expected one of context ",
                                                   program->context->id(), ", got one of ",
                                                   secret_key.context()->id()));
  }
  return std::unique_ptr<Session>(new Session(client, std::move(program), std::move(secret_key)));
}

absl::Status Session::UploadKeys(const Progress& progress, const CallOptions& options) {
  CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
  const ckks::ContextParameters& parameters = program_->context->parameters();
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<KeyUpload> upload,
                           client_.StartKeyUpload({.context = program_->known_context,
                                                   .key_count = program_->required_keys.size(),
                                                   .total_bytes = program_->key_bytes,
                                                   .progress = progress},
                                                  options));
  CIPHERD_RETURN_IF_ERROR(
      secret::KeyGenerator(secret_key_)
          .GenerateKeys(
              program_->required_keys, random, [&](secret::GeneratedKey generated, int, int) {
                return upload->Add(generated.key.ToValue(parameters, program_->context->id()));
              }));
  CIPHERD_ASSIGN_OR_RETURN(key_set_id_, upload->Finish());
  key_bytes_sent_ = upload->sent_bytes();
  return absl::OkStatus();
}

absl::Status Session::DropKeys(const CallOptions& options) {
  CIPHERD_RETURN_IF_ERROR(client_.DropKeys(key_set_id_, options));
  key_set_id_.clear();
  return absl::OkStatus();
}

absl::StatusOr<EvaluationResult> Session::EvaluateEncrypted(value::ValueTree inputs,
                                                            const CallOptions& options) const {
  if (key_set_id_.empty()) {
    return absl::FailedPreconditionError("session: upload the keys before an evaluation");
  }
  return client_.Evaluate({.program = program_,
                           .key_set_id = key_set_id_,
                           .request_id = "",
                           .inputs = std::move(inputs)},
                          options);
}

absl::StatusOr<NamedVectors> Session::Evaluate(const NamedVectors& inputs,
                                               const CallOptions& options) const {
  // A generator of its own for each call: calls may run at once.
  CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
  CIPHERD_ASSIGN_OR_RETURN(value::ValueTree encrypted, cipher_.EncryptInputs(inputs, random));
  CIPHERD_ASSIGN_OR_RETURN(const EvaluationResult result,
                           EvaluateEncrypted(std::move(encrypted), options));
  size_t item_count = 0;
  for (const auto& [name, items] : inputs) item_count = std::max(item_count, items.size());
  return cipher_.DecryptOutputs(result.outputs, static_cast<int64_t>(item_count));
}

}  // namespace cipherd::client
