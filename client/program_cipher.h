// Encrypts what a program takes and decrypts what it returns, as vectors.
//
//   ASSIGN_OR_RETURN(Random random, Random::FromOsEntropy());
//   ProgramCipher cipher(program, secret_key);
//   ASSIGN_OR_RETURN(ValueTree inputs, cipher.EncryptInputs({{"x", images}}, random));
//   ... evaluate ...
//   ASSIGN_OR_RETURN(NamedVectors outputs, cipher.DecryptOutputs(result, images.size()));
//
// Works without a connection. Inputs are encrypted under the secret key (smaller errors than under
// a public one) at the depth and scale that the program asks for. Thread-safe with one Random a
// thread.
//
// Decrypted results are for the owner of the secret key: what CKKS decrypts to holds information on
// the key (core/secret/decryptor.h). DecryptOutputsForSharing adds the noise that results need
// before others see them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "client/program_description.h"
#include "client/slot_layout.h"
#include "core/ckks/encoder.h"
#include "core/secret/decryptor.h"
#include "core/secret/random.h"
#include "core/secret/secret_key.h"
#include "core/value/value_tree.h"

namespace cipherd::client {

// Vectors by the name of an input or output.
using NamedVectors = std::map<std::string, Vectors>;

class ProgramCipher {
 public:
  // `secret_key` belongs to the program's context (else every call is InvalidArgument) and outlives
  // this.
  ProgramCipher(ProgramPtr program, const secret::SecretKey& secret_key);

  const ProgramDescription& program() const { return *program_; }
  const ProgramPtr& program_ptr() const { return program_; }

  // The tuple that the program takes. InvalidArgument where an input is missing, unknown, or does
  // not fit its layout or the modulus; OutOfRange for a number that the program was not planned for
  // (planned_range.h).
  absl::StatusOr<value::ValueTree> EncryptInputs(const NamedVectors& inputs,
                                                 secret::Random& random) const;

  // The first `item_count` items of every output (fewer where the output's layout has fewer
  // places). InvalidArgument naming the output that is not what the program returns; OutOfRange for
  // a number far beyond what was planned for.
  absl::StatusOr<NamedVectors> DecryptOutputs(const value::ValueTree& outputs,
                                              int64_t item_count) const;
  // The same of output number `index` alone; `first_item` is the number of its first item in
  // messages.
  absl::StatusOr<Vectors> DecryptOutput(size_t index, const value::ValueTree& output,
                                        int64_t item_count, int64_t first_item = 0) const;
  absl::StatusOr<NamedVectors> DecryptOutputsForSharing(const value::ValueTree& outputs,
                                                        int64_t item_count,
                                                        const secret::FloodingOptions& flooding,
                                                        secret::Random& random) const;

 private:
  absl::Status CheckContext() const;
  absl::StatusOr<value::ValueTree> EncryptInput(const programs::ProgramInput& input,
                                                const Vectors& items, secret::Random& random) const;
  // `decrypt` turns a ciphertext into its plaintext.
  template <typename Decrypt>
  absl::StatusOr<Vectors> DecryptOneWith(size_t index, const value::ValueTree& output,
                                         int64_t item_count, int64_t first_item,
                                         const Decrypt& decrypt) const;
  template <typename Decrypt>
  absl::StatusOr<NamedVectors> DecryptWith(const value::ValueTree& outputs, int64_t item_count,
                                           const Decrypt& decrypt) const;

  ProgramPtr program_;
  const secret::SecretKey& secret_key_;
  ckks::Encoder encoder_;
};

}  // namespace cipherd::client
