// Encryption under a public or a secret key.
//
//   ASSIGN_OR_RETURN(Plaintext message, encoder.Encode(slots, depth, scale));
//   ASSIGN_OR_RETURN(Ciphertext a, PublicKeyEncryptor(context, public_key).Encrypt(message,
//   random)); ASSIGN_OR_RETURN(SeededCiphertext b, SymmetricEncryptor(secret_key).Encrypt(message,
//   random));
//
// The ciphertext has the depth, scale and batch axes of its plaintext, two components, NTT domain,
// pageable host memory. Encrypting at the depth where a value is needed makes it smaller. A
// plaintext must be contiguous host memory in the NTT domain (InvalidArgument). Thread-safe with
// one Random a thread.
//
// The error of a fresh ciphertext, by coefficient: e (symmetric), or v · e + e0 + s · e1 (public
// key), with e, e0, e1 of standard deviation 3.19 and v, s uniform ternary; bounds stand in
// tests/secret.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/context.h"
#include "core/ckks/seeded_uniform.h"
#include "core/secret/key_generator.h"
#include "core/secret/random.h"
#include "core/secret/secret_key.h"

namespace cipherd::secret {

class PublicKeyEncryptor {
 public:
  PublicKeyEncryptor(std::shared_ptr<const ckks::Context> context, PublicKey public_key);

  absl::StatusOr<ckks::Ciphertext> Encrypt(const ckks::Plaintext& message, Random& random) const;

 private:
  std::shared_ptr<const ckks::Context> context_;
  PublicKey public_key_;
};

// A ciphertext whose component 1 is ExpandSeededUniform(seed, flat batch index, prime id, …), so
// that component 0 and the seed say it all.
struct SeededCiphertext {
  ckks::Ciphertext ciphertext;
  ckks::Seed seed = {};
};

class SymmetricEncryptor {
 public:
  // The secret key must outlive the encryptor.
  explicit SymmetricEncryptor(const SecretKey& secret_key) : secret_key_(secret_key) {}

  absl::StatusOr<SeededCiphertext> Encrypt(const ckks::Plaintext& message, Random& random) const;

 private:
  const SecretKey& secret_key_;
};

}  // namespace cipherd::secret
