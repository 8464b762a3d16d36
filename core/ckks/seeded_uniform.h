// Expansion of a public seed to uniform residues: the `a` part of keys and symmetric ciphertexts,
// which can therefore travel as 32 bytes. Holds no secret.
//
// The rule, complete, so that any library can reproduce it. Generator id 1, version 1:
//   - The key stream of ChaCha20 (RFC 8439, 20 rounds) with key = the 32 bytes of the seed, block
//   counter
//     starting at 0, and the 96-bit nonce of three little-endian 32-bit words: version (1),
//     polynomial, prime id. Each limb of each polynomial has a stream of its own, so that a limb's
//     residues do not depend on which other limbs are present.
//   - The key stream is read as little-endian 64-bit words. Of each word the low b bits are taken,
//   b the
//     bit length of q; the candidate is residue number i (i = 0, 1, …, N - 1) if it is below q, and
//     is skipped otherwise.
//   - `polynomial` is the digit of a key, the flat batch index of a ciphertext, 0 of a public key.
//   Residue i
//     is entry i of the limb in the NTT domain, in the order of the wire.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace cipherd::ckks {

// Identifies the rule above in wire formats.
enum class SeedGenerator : uint8_t { kChaCha20Rejection = 1 };
inline constexpr uint32_t kSeededUniformVersion = 1;

inline constexpr int kSeedBytes = 32;
using Seed = std::array<uint8_t, kSeedBytes>;

// Fills `residues` with entries 0, 1, … of the limb of `prime_id`, whose prime is q (2 ≤ q < 2^63).
// Thread-safe.
void ExpandSeededUniform(const Seed& seed, uint32_t polynomial, uint32_t prime_id, uint64_t q,
                         std::span<uint64_t> residues);

}  // namespace cipherd::ckks
