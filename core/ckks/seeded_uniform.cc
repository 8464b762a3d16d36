#include "core/ckks/seeded_uniform.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace cipherd::ckks {
namespace {

struct CipherDeleter {
  void operator()(EVP_CIPHER_CTX* cipher) const { EVP_CIPHER_CTX_free(cipher); }
};

// Only an exhausted heap or an OpenSSL without ChaCha20 gets here. Going on would send the bytes of
// a stack as if they were uniform.
void RequireCipher(bool worked) {
  if (!worked) std::abort();
}

void StoreLittle32(uint32_t word, uint8_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(word >> (8 * i));
}

uint64_t LoadLittle64(const uint8_t* in) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = (word << 8) | in[i];
  return word;
}

}  // namespace

void ExpandSeededUniform(const Seed& seed, uint32_t polynomial, uint32_t prime_id, uint64_t q,
                         std::span<uint64_t> residues) {
  // OpenSSL takes the block counter (0) and the nonce as one vector of 16 bytes.
  std::array<uint8_t, 16> counter_and_nonce = {};
  StoreLittle32(kSeededUniformVersion, &counter_and_nonce[4]);
  StoreLittle32(polynomial, &counter_and_nonce[8]);
  StoreLittle32(prime_id, &counter_and_nonce[12]);
  const std::unique_ptr<EVP_CIPHER_CTX, CipherDeleter> cipher(EVP_CIPHER_CTX_new());
  RequireCipher(cipher != nullptr &&
                EVP_EncryptInit_ex(cipher.get(), EVP_chacha20(), nullptr, seed.data(),
                                   counter_and_nonce.data()) == 1);

  const uint64_t mask = ~uint64_t{0} >> (64 - std::bit_width(q));
  constexpr size_t kBlockBytes = 8192;
  static constexpr std::array<uint8_t, kBlockBytes> kZeros = {};
  std::array<uint8_t, kBlockBytes> key_stream;
  size_t filled = 0;
  while (filled < residues.size()) {
    int length = 0;
    RequireCipher(EVP_EncryptUpdate(cipher.get(), key_stream.data(), &length, kZeros.data(),
                                    kBlockBytes) == 1 &&
                  length == kBlockBytes);
    for (size_t i = 0; i < kBlockBytes && filled < residues.size(); i += 8) {
      const uint64_t candidate = LoadLittle64(&key_stream[i]) & mask;
      residues[filled] = candidate;
      filled += candidate < q ? 1 : 0;
    }
  }
}

}  // namespace cipherd::ckks
