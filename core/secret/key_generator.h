// Generates the public key and the evaluation keys of a secret key.
//
//   KeyGenerator generator(secret_key);
//   ASSIGN_OR_RETURN(PublicKey public_key, generator.GeneratePublicKey(random));
//   ASSIGN_OR_RETURN(ckks::KeySet keys, generator.GenerateKeySet(layout, random, progress));
//
// Results are pageable host tensors. The uniform part of every key is expanded from a fresh public
// seed, which comes with it, so that a key can be sent at half its size. The secret key must
// outlive the generator. Thread-safe with one Random a thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/ckks/evaluation_keys.h"
#include "core/ckks/key_set.h"
#include "core/ckks/seeded_uniform.h"
#include "core/secret/random.h"
#include "core/secret/secret_key.h"
#include "core/value/exact_value.h"

namespace cipherd::secret {

// Encryption of zero over all of Q: (b, a), b = -a · s + e.
// Invariant: data is contiguous uint64 [2, |Q|, N], NTT domain, standard residues, depth 0.
struct PublicKey {
  value::Tensor data;
  ckks::Seed seed = {};  // of a; all zero where the key was read from a value

  // InvalidArgument naming the field (relative to `path`), expected and actual where `value` is not
  // a lawful public key of the context.
  static absl::StatusOr<PublicKey> FromValue(const value::ExactValue& value, std::string_view path,
                                             const ckks::ContextParameters& parameters,
                                             std::string_view context_id);
  value::ExactValue ToValue(const ckks::ContextParameters& parameters,
                            std::string_view context_id) const;
};

// An evaluation key and the seed of its uniform part: component 1 of digit d is
// ExpandSeededUniform(seed, d, prime id, …).
struct GeneratedKey {
  ckks::EvaluationKey key;
  ckks::Seed seed = {};
};

class KeyGenerator {
 public:
  explicit KeyGenerator(const SecretKey& secret_key) : secret_key_(secret_key) {}

  absl::StatusOr<PublicKey> GeneratePublicKey(Random& random) const;

  // InvalidArgument where a rotation step is not in [1, S).
  absl::StatusOr<GeneratedKey> GenerateKey(const ckks::KeyId& id, Random& random) const;

  // Called after each key with how many of how many are done. Stops the generation by an error,
  // which is then returned.
  using Sink = std::function<absl::Status(GeneratedKey key, int done_count, int total_count)>;

  // Generates exactly the keys of `layout`, in its order, one at a time in memory: for sending them
  // on.
  absl::Status GenerateKeys(const ckks::KeyLayout& layout, Random& random, const Sink& sink) const;

  using Progress = std::function<void(int done_count, int total_count)>;

  // The same, all at once in memory. `progress` may be null.
  absl::StatusOr<ckks::KeySet> GenerateKeySet(const ckks::KeyLayout& layout, Random& random,
                                              const Progress& progress) const;

 private:
  const SecretKey& secret_key_;
};

}  // namespace cipherd::secret
