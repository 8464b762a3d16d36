// A CKKS secret key, and its residues modulo every prime of the context.
//
//   ASSIGN_OR_RETURN(SecretKey key, SecretKey::Generate(context, random));
//   WriteKeyFile(key.coefficients());
//   ASSIGN_OR_RETURN(SecretKey same, SecretKey::FromCoefficients(context, ReadKeyFile().span()));
//
// Memory is wiped on destruction. Move-only. Immutable, thread-safe. Never leaves the client.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "core/ckks/context.h"
#include "core/secret/random.h"
#include "core/secret/secret_buffer.h"

namespace cipherd::secret {

class SecretKey {
 public:
  // Uniform ternary.
  static SecretKey Generate(std::shared_ptr<const ckks::Context> context, Random& random);

  // From the N coefficients of an earlier key. InvalidArgument where there are not N of them or one
  // is not in {-1, 0, 1}.
  static absl::StatusOr<SecretKey> FromCoefficients(std::shared_ptr<const ckks::Context> context,
                                                    std::span<const int8_t> coefficients);

  const std::shared_ptr<const ckks::Context>& context() const { return context_; }
  // N coefficients in {-1, 0, 1}: all that a key file needs beside the context.
  std::span<const int8_t> coefficients() const { return coefficients_.span(); }
  // N residues modulo the prime, NTT domain.
  std::span<const uint64_t> limb(int64_t prime_id) const;

 private:
  SecretKey(std::shared_ptr<const ckks::Context> context, SecretBuffer<int8_t> coefficients);

  std::shared_ptr<const ckks::Context> context_;
  SecretBuffer<int8_t> coefficients_;
  SecretBuffer<uint64_t> limbs_;  // [|Q| + |P|, N]
};

}  // namespace cipherd::secret
