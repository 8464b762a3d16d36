#include "core/secret/random.h"

#include <openssl/crypto.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cipherd::secret {
namespace {

constexpr size_t kBlockBytes = 4096;

// Only an exhausted heap or an OpenSSL without ChaCha20 gets here. Going on would hand out what is
// not random, and keys made of it would open to anyone.
void RequireCipher(bool worked) {
  if (!worked) std::abort();
}

}  // namespace

absl::StatusOr<Random> Random::FromOsEntropy() {
  SecretBuffer<uint8_t> key(32);
  size_t filled = 0;
  while (filled < key.size()) {
    const ssize_t got = getrandom(key.data() + filled, key.size() - filled, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return absl::UnavailableError(
          absl::StrCat("the system gave no entropy: ", std::strerror(errno)));
    }
    filled += static_cast<size_t>(got);
  }
  return Random(std::span<const uint8_t, 32>(key.data(), 32));
}

Random Random::FromSeedForTesting(uint64_t seed) {
  std::array<uint8_t, 32> key = {};
  for (int i = 0; i < 8; ++i) key[i] = static_cast<uint8_t>(seed >> (8 * i));
  return Random(key);
}

Random::Random(std::span<const uint8_t, 32> key)
    : cipher_(EVP_CIPHER_CTX_new()), block_(kBlockBytes), used_(kBlockBytes) {
  const std::array<uint8_t, 16> counter_and_nonce = {};
  RequireCipher(cipher_ != nullptr &&
                EVP_EncryptInit_ex(cipher_.get(), EVP_chacha20(), nullptr, key.data(),
                                   counter_and_nonce.data()) == 1);
}

Random::~Random() = default;
Random::Random(Random&&) noexcept = default;
Random& Random::operator=(Random&&) noexcept = default;

void Random::Refill() {
  // Overwrites what was given out before.
  std::fill_n(block_.data(), block_.size(), uint8_t{0});
  int length = 0;
  const int size = static_cast<int>(block_.size());
  RequireCipher(EVP_EncryptUpdate(cipher_.get(), block_.data(), &length, block_.data(), size) ==
                    1 &&
                length == size);
  used_ = 0;
}

void Random::Fill(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    if (used_ == block_.size()) Refill();
    const size_t count = std::min(bytes.size(), block_.size() - used_);
    std::memcpy(bytes.data(), block_.data() + used_, count);
    used_ += count;
    bytes = bytes.subspan(count);
  }
}

uint64_t Random::NextUint64() {
  uint8_t bytes[8];
  Fill(bytes);
  uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = (word << 8) | bytes[i];
  OPENSSL_cleanse(bytes, sizeof(bytes));
  return word;
}

double Random::NextUnitDouble() { return static_cast<double>(NextUint64() >> 11) * 0x1p-53; }

}  // namespace cipherd::secret
