#include "tests/programs/test_client.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/secret/decryptor.h"
#include "core/secret/encryptor.h"
#include "core/secret/key_generator.h"
#include "core/value/tensor_copy.h"

namespace cipherd::programs {

TestClient::TestClient(std::shared_ptr<const CheckedProgram> program, uint64_t seed,
                       runtime::Stream& stream)
    : program_(std::move(program)),
      stream_(stream),
      encoder_(program_->context),
      random_(secret::Random::FromSeedForTesting(seed)),
      secret_key_(secret::SecretKey::Generate(program_->context, random_)) {}

absl::StatusOr<std::unique_ptr<TestClient>> TestClient::Make(
    std::shared_ptr<const CheckedProgram> program, uint64_t seed, runtime::Stream& stream) {
  std::unique_ptr<TestClient> client(new TestClient(std::move(program), seed, stream));
  const secret::KeyGenerator generator(client->secret_key_);
  CIPHERD_RETURN_IF_ERROR(generator.GenerateKeys(
      client->program_->keys, client->random_,
      [&](secret::GeneratedKey generated, int, int) -> absl::Status {
        CIPHERD_ASSIGN_OR_RETURN(ckks::EvaluationKey key, ckks::UploadKey(generated.key, stream));
        CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
        client->keys_.emplace(key.id, std::move(key));
        return absl::OkStatus();
      }));
  return client;
}

absl::StatusOr<std::vector<value::ValueTree>> TestClient::Encrypt(
    const std::map<std::string, ComplexSlots>& slots) {
  const secret::SymmetricEncryptor encryptor(secret_key_);
  std::vector<value::ValueTree> inputs;
  for (const ProgramInput& input : program_->spec.inputs) {
    const EdgeState& state = program_->edges.at(input.name);
    CIPHERD_ASSIGN_OR_RETURN(
        const ckks::Plaintext message,
        encoder_.EncodeComplex(slots.at(input.name), state.depth, state.scale));
    CIPHERD_ASSIGN_OR_RETURN(secret::SeededCiphertext seeded, encryptor.Encrypt(message, random_));
    CIPHERD_ASSIGN_OR_RETURN(seeded.ciphertext.data,
                             value::CopyToDevice(seeded.ciphertext.data, stream_));
    inputs.push_back(value::ValueTree::Value(
        seeded.ciphertext.ToValue(program_->spec.context, program_->context->id())));
  }
  CIPHERD_ASSIGN_OR_RETURN(ckks::KeyTable table,
                           ckks::MakeKeyTable(program_->keys, keys_, stream_));
  inputs.push_back(value::ValueTree::Leaf(std::move(table.addresses)));
  return inputs;
}

absl::StatusOr<std::map<std::string, ComplexSlots>> TestClient::Decrypt(
    const value::ValueTree& outputs) {
  const secret::Decryptor decryptor(secret_key_);
  std::map<std::string, ComplexSlots> slots;
  for (size_t i = 0; i < program_->spec.outputs.size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(
        ckks::Ciphertext ciphertext,
        ckks::Ciphertext::FromValue(outputs[i].exact_value(), "output", program_->spec.context,
                                    program_->context->id()));
    CIPHERD_ASSIGN_OR_RETURN(ciphertext.data, value::CopyToHost(ciphertext.data, stream_));
    CIPHERD_ASSIGN_OR_RETURN(const ckks::Plaintext message, decryptor.Decrypt(ciphertext));
    CIPHERD_ASSIGN_OR_RETURN(slots[program_->spec.outputs[i].name], encoder_.Decode(message));
  }
  return slots;
}

}  // namespace cipherd::programs
