#include "client/program_cipher.h"

#include <algorithm>
#include <complex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/planned_range.h"
#include "core/base/status_macros.h"
#include "core/ckks/ciphertext.h"
#include "core/secret/encryptor.h"

namespace cipherd::client {

ProgramCipher::ProgramCipher(ProgramPtr program, const secret::SecretKey& secret_key)
    : program_(std::move(program)), secret_key_(secret_key), encoder_(program_->context) {}

absl::Status ProgramCipher::CheckContext() const {
  if (secret_key_.context()->id() == program_->context->id()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("secret key: expected one of context ",
                                                 program_->context->id(), ", got one of ",
                                                 secret_key_.context()->id()));
}

absl::StatusOr<value::ValueTree> ProgramCipher::EncryptInputs(const NamedVectors& inputs,
                                                              secret::Random& random) const {
  CIPHERD_RETURN_IF_ERROR(CheckContext());
  for (const auto& [name, items] : inputs) {
    const bool is_known =
        std::any_of(program_->inputs.begin(), program_->inputs.end(),
                    [&name = name](const auto& input) { return input.name == name; });
    if (!is_known) {
      return absl::InvalidArgumentError(
          absl::StrCat("inputs['", name, "']: program '", program_->name, "' has no such input"));
    }
  }
  std::vector<value::ValueTree> values;
  for (const programs::ProgramInput& input : program_->inputs) {
    const auto items = inputs.find(input.name);
    if (items == inputs.end()) {
      return absl::InvalidArgumentError(absl::StrCat("inputs['", input.name, "']: missing"));
    }
    CIPHERD_ASSIGN_OR_RETURN(value::ValueTree encrypted,
                             EncryptInput(input, items->second, random));
    values.push_back(std::move(encrypted));
  }
  return value::ValueTree::Tuple(std::move(values));
}

absl::StatusOr<value::ValueTree> ProgramCipher::EncryptInput(const programs::ProgramInput& input,
                                                             const Vectors& items,
                                                             secret::Random& random) const {
  const ckks::ContextParameters& parameters = program_->context->parameters();
  const std::string path = absl::StrCat("inputs['", input.name, "']");
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<double> slots,
                           PackSlots(input.layout, parameters.slot_count(), items, path));
  CIPHERD_RETURN_IF_ERROR(CheckInputRange(input, items, path));
  CIPHERD_ASSIGN_OR_RETURN(const ckks::Plaintext message,
                           encoder_.Encode(slots, input.depth, input.scale));
  CIPHERD_ASSIGN_OR_RETURN(const secret::SeededCiphertext encrypted,
                           secret::SymmetricEncryptor(secret_key_).Encrypt(message, random));
  return value::ValueTree::Value(encrypted.ciphertext.ToValue(parameters, program_->context->id()));
}

template <typename Decrypt>
absl::StatusOr<Vectors> ProgramCipher::DecryptOneWith(size_t index, const value::ValueTree& output,
                                                      int64_t item_count, int64_t first_item,
                                                      const Decrypt& decrypt) const {
  CIPHERD_RETURN_IF_ERROR(CheckContext());
  const ckks::Context& context = *program_->context;
  const programs::ProgramOutput& described = program_->outputs[index];
  const std::string path = absl::StrCat("outputs['", described.name, "']");
  if (output.kind() != value::TreeKind::kValue) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected a value"));
  }
  CIPHERD_ASSIGN_OR_RETURN(
      const ckks::Ciphertext ciphertext,
      ckks::Ciphertext::FromValue(output.exact_value(), path, context.parameters(), context.id()));
  CIPHERD_ASSIGN_OR_RETURN(const ckks::Plaintext message, decrypt(ciphertext));
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<std::complex<double>> slots, encoder_.Decode(message));
  std::vector<double> real(slots.size());
  std::transform(slots.begin(), slots.end(), real.begin(), [](auto slot) { return slot.real(); });
  CIPHERD_ASSIGN_OR_RETURN(
      Vectors items,
      UnpackSlots(described.layout, real, std::min(item_count, described.layout.item_count), path));
  CIPHERD_RETURN_IF_ERROR(CheckOutputRange(described, items, path, first_item));
  return items;
}

template <typename Decrypt>
absl::StatusOr<NamedVectors> ProgramCipher::DecryptWith(const value::ValueTree& outputs,
                                                        int64_t item_count,
                                                        const Decrypt& decrypt) const {
  const ProgramDescription& program = *program_;
  if (outputs.kind() != value::TreeKind::kTuple ||
      outputs.children().size() != program.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("outputs: expected a tuple of ",
                                                   program.outputs.size(), " values of program '",
                                                   program.name, "'"));
  }
  NamedVectors vectors;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(vectors[program.outputs[i].name],
                             DecryptOneWith(i, outputs[i], item_count, 0, decrypt));
  }
  return vectors;
}

absl::StatusOr<Vectors> ProgramCipher::DecryptOutput(size_t index, const value::ValueTree& output,
                                                     int64_t item_count, int64_t first_item) const {
  const secret::Decryptor decryptor(secret_key_);
  return DecryptOneWith(
      index, output, item_count, first_item,
      [&](const ckks::Ciphertext& ciphertext) { return decryptor.Decrypt(ciphertext); });
}

absl::StatusOr<NamedVectors> ProgramCipher::DecryptOutputs(const value::ValueTree& outputs,
                                                           int64_t item_count) const {
  const secret::Decryptor decryptor(secret_key_);
  return DecryptWith(outputs, item_count, [&](const ckks::Ciphertext& ciphertext) {
    return decryptor.Decrypt(ciphertext);
  });
}

absl::StatusOr<NamedVectors> ProgramCipher::DecryptOutputsForSharing(
    const value::ValueTree& outputs, int64_t item_count, const secret::FloodingOptions& flooding,
    secret::Random& random) const {
  const secret::Decryptor decryptor(secret_key_);
  return DecryptWith(outputs, item_count, [&](const ckks::Ciphertext& ciphertext) {
    return decryptor.DecryptForSharing(ciphertext, flooding, random);
  });
}

}  // namespace cipherd::client
