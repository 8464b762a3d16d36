// Randomness for secrets: a ChaCha20 key stream under a key from the operating system.
//
//   ASSIGN_OR_RETURN(Random random, Random::FromOsEntropy());
//   uint64_t word = random.NextUint64();
//
// Move-only, not thread-safe: one generator a thread. The state is wiped on destruction. A process
// must not fork with a generator alive and use it on both sides.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "core/secret/secret_buffer.h"

namespace cipherd::secret {

class Random {
 public:
  // Keyed with 32 bytes of OS entropy (getrandom). Unavailable where the system has none to give.
  static absl::StatusOr<Random> FromOsEntropy();
  // The same stream for the same seed: for tests. Everything generated from it is as public as the
  // seed.
  static Random FromSeedForTesting(uint64_t seed);

  ~Random();
  Random(Random&&) noexcept;
  Random& operator=(Random&&) noexcept;

  void Fill(std::span<uint8_t> bytes);
  uint64_t NextUint64();
  // Uniform in [0, 1) with 53 bits.
  double NextUnitDouble();

 private:
  explicit Random(std::span<const uint8_t, 32> key);
  void Refill();

  struct CipherDeleter {
    void operator()(EVP_CIPHER_CTX* cipher) const { EVP_CIPHER_CTX_free(cipher); }
  };
  std::unique_ptr<EVP_CIPHER_CTX, CipherDeleter> cipher_;
  SecretBuffer<uint8_t> block_;  // key stream not given out yet: [used_, size)
  size_t used_ = 0;
};

}  // namespace cipherd::secret
